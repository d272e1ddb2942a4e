// SPDX-License-Identifier: Apache-2.0
// thin: space is taken from the drive below when it is first written, and given back by discards.
//
//   thin(DRIVE, virtual=0, chunk=0, warn=80)
//
// virtual is the size of the drive above, and may be more than there is below; 0: what fits. chunk
// is the unit of space, a power of two; 0: 1M, smaller on drives below 256 MiB. Both are kept on
// the drive: an existing one may be opened without them. resize(), or a larger `virtual`, makes it
// grow.
//
// A write to a hole takes a chunk and zeroes what it does not cover. Discards, and write-zeroes
// without keep_space, of whole chunks make them holes again and are passed to the drive below once
// that is durable. When all chunks are in use, writes to holes fail with kNoSpace; nothing is lost,
// and everything else goes on. facts() say how full it is, and is_low from `warn` percent on.
//
// The map lies in a journal before the data (mapped_format.h); 4 bytes of memory per chunk written.
//
// Does not open (nothing is written): a drive that holds something else, has become smaller, or is
// damaged; another chunk, or a smaller size, than it has.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kThin;

}  // namespace cairn::drive
