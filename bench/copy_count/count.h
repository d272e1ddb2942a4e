// SPDX-License-Identifier: Apache-2.0
// What the library in preload.cc and those who start programs with it agree on.
#pragma once

#include <cstddef>

namespace cairn::bench {

// Names a file of 8 bytes, which are the number of bytes copied so far.
inline constexpr const char* kCopyCountVariable = "CAIRN_COPY_COUNT";
// Smaller pieces are no payload: those are sectors and blocks.
inline constexpr size_t kCopyCountedMin = 512;
// The library, beside the program that starts others with it.
inline constexpr const char* kCopyCountLibrary = "libcairn_copy_count.so";

}  // namespace cairn::bench
