// SPDX-License-Identifier: Apache-2.0
// dedup: blocks with equal contents take the space of one.
//
//   dedup(DRIVE, virtual=0)
//
// A block that is written is looked for by a 64-bit hash of its bytes; one that seems to be there
// is read and compared. So a collision costs a read and loses nothing, whoever made it, and the
// hash may be fast: with a strong hash instead, equality would be believed, hashing would cost more
// than the rest together, and entries would be four times as large. Blocks of zeroes take no space.
// A block is free when nobody refers to it; how many do is counted from the map, so counts cannot
// go wrong. Of equal blocks that are written at the same moment each may take its own.
//
// virtual is the size of the drive above, and may be more than there is below; 0: what fits when
// all blocks differ. It is kept on the drive. When all blocks are in use, writes of blocks that are
// new fail with kNoSpace; nothing is lost, all else goes on. facts() say what is saved.
//
// Nothing is overwritten: the map, in a journal before the data, follows what is written to new
// places (placed_drive.h). Atomic writes are of one block. Discards and write-zeroes give space
// back, keep_space or not. What one block loses, all that equal it lose: put checksum or mirror
// below.
//
// Costs 24 bytes of memory per block below, at most, and 4 per block above (7 GiB per TiB of 4 KiB
// blocks), and a journal of 72 bytes per block above. Less than 2^32 - 1 blocks,
// above and below; at least 1 MiB below.
//
// Does not open (nothing is written): a drive that holds something else, has become smaller, or is
// damaged; another size than it has.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kDedup;

}  // namespace cairn::drive
