// SPDX-License-Identifier: Apache-2.0
// Copies between a cache and memory that the cache is too small for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace cairn {

// Copies to memory that is not expected to be read soon: past the cache, where the machine has
// stores for it, so that nothing is fetched only to be overwritten. Same size, no overlap.
void copy_past_cache(MutableBytes to, Bytes from);

// Calls `fetch` with an address in each cache line that holds some of the first 4 KiB, in order.
template <class Fetch>
void for_each_line_to_fetch(Bytes bytes, Fetch fetch) {
  constexpr size_t kLine = 64;
  constexpr size_t kFetchedMax = 4096;
  const size_t size = bytes.size() < kFetchedMax ? bytes.size() : kFetchedMax;
  size_t next = kLine - reinterpret_cast<uintptr_t>(bytes.data()) % kLine;  // first of a line
  if (size > 0) fetch(bytes.data());
  for (; next < size; next += kLine) fetch(bytes.data() + next);
}

// What will be read soon, from memory that is hardly in the cache: begins to fetch the first 4 KiB
// of it. The rest comes by itself.
inline void fetch_soon(Bytes bytes) {
  for_each_line_to_fetch(bytes, [](const std::byte* line) { __builtin_prefetch(line, 0, 2); });
}

}  // namespace cairn
