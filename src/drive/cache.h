// SPDX-License-Identifier: Apache-2.0
// cache: blocks that are used often, kept where they are faster.
//
//   cache(DRIVE, memory=64M)                            in memory
//
// In memory. The least recently used block goes first. A read uses the blocks that are there, then
// reads and uses those from the first that lacks to the last; a write uses its blocks when the
// drive below has them (write-through), so nothing is lost with the memory. Discarded and zeroed
// blocks are dropped, and so are those of a write that failed or was cancelled. Compares and reads
// of single copies (Request::copy) go to the drive below. Reads that are all in memory complete
// without waiting (try_now).
#pragma once

#include "drive/services.h"

namespace cairn::drive {

extern const Service kCache;

}  // namespace cairn::drive
