// SPDX-License-Identifier: Apache-2.0
// checksum: blocks that are not what was written are not given to anybody.
//
//   checksum(DRIVE, cache=4M, rate=0)
//
// Each block has a CRC32C of this drive's id, the block's number and its bytes, in a table on the
// same drive. A read whose bytes do not match fails with kCorrupt: bits that flipped, a block that
// was written to another place, an old block whose newer write was lost (each passes with
// probability 2^-32; a lost write of data and of its table block together passes, which takes two
// faults). A block that was never written, or discarded, has the entry 0 and must be zeroes.
//
// Above a drive that keeps copies (geometry().copies: a mirror), a copy that matches is given
// instead, and written to all. `tell scrub` reads every copy of every block in the background, at
// `rate` bytes per second (0: any), and repairs what it finds.
//
// Crashes. Data and table cannot be written together. Before a region is written its bit in a
// bitmap is durable; it goes when nobody wrote there for a second and data and table are durable.
// The table is written with every flush, so a marked region holds blocks that do not match only
// where somebody wrote since. After a crash such blocks, in marked regions and nowhere else, are
// taken as they are found ("trusted"), soon, in the background or when they are read. The same goes
// for blocks of a write that failed or was stopped.
//
// Does not open (nothing is written): a label of another service or version; a drive that became
// smaller; a bitmap that is damaged on all copies. A blank drive is discarded and becomes a new
// one. A damaged block of the table fails reads and writes of the blocks it describes; a discard of
// all of them makes it new.
//
// Cost: 4 bytes per block, that is 1 GiB per TiB of 4 KiB blocks, on the drive; `cache` bytes of
// memory for the table. Blocks are held alone while they are written. Geometry as below, and one
// copy; atomic writes in units that divide the offset of the data.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kChecksum;

}  // namespace cairn::drive
