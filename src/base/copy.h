// SPDX-License-Identifier: Apache-2.0
// Copies between a cache and memory that the cache is too small for.
#pragma once

#include "base/bytes.h"

namespace cairn {

// Copies to memory that is not expected to be read soon: past the cache, where the machine has
// stores for it, so that nothing is fetched only to be overwritten. Same size, no overlap.
void copy_past_cache(MutableBytes to, Bytes from);

// What will be read soon, from memory that is hardly in the cache: begins to fetch the first 4 KiB
// of it. The rest comes by itself.
inline void fetch_soon(Bytes bytes) {
  constexpr size_t kLine = 64;
  constexpr size_t kMost = 4096;
  const size_t size = bytes.size() < kMost ? bytes.size() : kMost;
  for (size_t i = 0; i < size; i += kLine) __builtin_prefetch(bytes.data() + i, 0, 2);
}

}  // namespace cairn
