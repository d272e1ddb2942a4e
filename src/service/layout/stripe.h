// SPDX-License-Identifier: Apache-2.0
// stripe: blocks in chunks on one drive after the other (RAID 0), for the speed of all of them.
//
//   stripe(FIRST, SECOND, ..., chunk=64K)
//
// Chunk n lies on drive n modulo their number. The order of the drives and the chunk are part of
// the data: name the same each time. It is as large as the smallest drive, in whole chunks, times
// their number. kInvalid: different block sizes, a chunk that is no multiple of them, a drive
// smaller than a chunk. What a request has on one drive goes there as one request.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kStripe;

}  // namespace cairn::drive
