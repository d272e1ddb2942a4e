// SPDX-License-Identifier: Apache-2.0
// compress: chunks take as many blocks of the drive below as they need when compressed.
//
//   compress(DRIVE, codec=lz4, level=0, virtual=0)
//
// A chunk is 8 blocks, 32 KiB on most drives. It lies in 1 to 8 blocks anywhere, compressed by lz4
// or zstd, or as it is when that saves no block; a chunk of zeroes lies nowhere. codec and level
// (0: the codec's own) are for what is written from now on: each chunk says what it was written
// with.
//
// virtual is the size of the drive above, and may be more than there is below; 0: what fits when
// nothing can be compressed. It is kept on the drive. When all blocks are in use, writes fail with
// kNoSpace; nothing is lost, reads and discards go on. facts() say what is saved.
//
// A write of a part of a chunk reads the chunk, and always writes it to a new place; the map, in a
// journal before the data, follows (placed_drive.h). So a write within a chunk happens wholly or
// not at all: atomic writes are of 8 blocks. Discards and write-zeroes give space back, keep_space
// or not. A chunk that does not decompress fails with kCorrupt, by itself; bits that flip in one
// that was stored as it is pass: put checksum below.
//
// Costs 40 bytes of memory per chunk written, and a journal of 184 bytes per chunk above. Less than
// 2^32 - 1 blocks, above and below; at least 1 MiB below.
//
// Does not open (nothing is written): a drive that holds something else, has become smaller, or is
// damaged; another size than it has.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kCompress;

}  // namespace cairn::drive
