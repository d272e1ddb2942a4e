// SPDX-License-Identifier: Apache-2.0
// Pages of the processor's memory: 4 KiB on x86-64, 4, 16 or 64 KiB on arm64.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace cairn::posix {

inline size_t page_size() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

struct PageRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // not above begin: there are none
};

// The pages that lie wholly between two offsets of a mapping. The kernel is given nothing else: it
// makes a length that ends inside a page longer, and takes what lies behind.
inline PageRange whole_pages(uint64_t begin, uint64_t end, uint64_t size) {
  return {.begin = align_up(begin, size), .end = align_down(end, size)};
}

}  // namespace cairn::posix
