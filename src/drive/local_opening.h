// SPDX-License-Identifier: Apache-2.0
// Incarnation::local_opening: whether the death of this process alone loses what had completed and
// was not flushed.
//
//   0             not known: it may.
//   kKernelKeeps  it does not: the kernel has what a file was given, or nothing is volatile at all.
//   another       it does when the next process has another number: that of memory, or of a map in
//                 memory, is drawn when it is made; that of a remote drive is its target's opening.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace cairn::drive {

inline constexpr uint64_t kKernelKeeps = 1;

// Of a drive that stands on two.
inline uint64_t combined_local_opening(uint64_t one, uint64_t other) {
  if (one == 0 || other == 0) return 0;
  if (one == kKernelKeeps) return other;
  if (other == kKernelKeeps) return one;
  return mix64(mix64(one) ^ other) | 1;
}

}  // namespace cairn::drive
