// SPDX-License-Identifier: Apache-2.0
// How long a frame takes at a rate.
#pragma once

#include <cstdint>

#include "model/net/flow.h"

namespace cairn::net {

inline Picos frame_time(uint64_t bytes, uint64_t bits_per_s) {
  return static_cast<Picos>(bytes * 8 * 1'000'000'000'000ULL / bits_per_s);
}

// As the reference computes it: seconds as a floating-point number, cut to 2^-64 s and then to
// whole nanoseconds. So 60 bytes at 10 Gb/s take 47 ns, not 48.
inline Picos frame_time_hpcc(uint64_t bytes, uint64_t bits_per_s) {
  const double seconds = static_cast<double>(bytes) * 8 / static_cast<double>(bits_per_s);
  const auto fixed = static_cast<unsigned __int128>(static_cast<uint64_t>(seconds * 0x1.0p64));
  return static_cast<Picos>(static_cast<uint64_t>((fixed * 1'000'000'000) >> 64)) * kNanosecond;
}

}  // namespace cairn::net
