// SPDX-License-Identifier: Apache-2.0
// cache: blocks that are used often, kept where they are faster.
//
//   cache(DRIVE, memory=64M)                               in memory
//   cache(SLOW, FAST, mode=back, dirty=50, drain=no)       on a fast drive
//
// In memory. The least recently used block goes first. A read uses the blocks that are there, then
// reads and uses those from the first that lacks to the last; a write uses its blocks when the
// drive below has them (write-through), so nothing is lost with the memory. Discarded and zeroed
// blocks are dropped, and so are those of a write that failed or was cancelled. Compares and reads
// of single copies (Request::copy) go to the drive below. Reads that are all in memory complete
// without waiting (try_now).
//
// On a fast drive. Lines of 64 KiB, at most 64 blocks, of which any blocks may be there. What is
// read from the slow drive is kept in the background, unless there is too much to do.
//
// mode=through: writes reach the slow drive first; what the cache holds is forgotten when it
// closes. mode=back: writes go to the fast drive. A durable write, or one followed by a flush,
// survives a crash because it is there, and a journal on the fast drive says so (journal.h); the
// slow drive is written in the background, in order of address, when more than `dirty` percent of
// the lines are newer than there. "flush" (tell) writes all of them back; drain=yes does so at the
// end. When no slot is free a write goes to the slow drive. Drives opened in one mode can be opened
// in the other.
//
// Both drives have labels, the slow one 64 KiB before its data: the price for knowing that they
// belong together. While the fast drive may have newer data, the slow one does not open without it.
//
// Does not open (nothing is written): drives that hold something else or belong to others; a fast
// drive that was not there when the slow one was used last, or the other way round (each counts how
// often it was opened); different block sizes; drives that are too small.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kCache;

}  // namespace cairn::drive
