// SPDX-License-Identifier: Apache-2.0
// slice: a part of a drive as a drive of its own.
//
//   slice(DRIVE, offset=1G, length=4G)
//
// Block 0 is the one at `offset` bytes; `length` 0 takes all from there on. Both are multiples of
// the block size and within the drive, or it does not open (kInvalid). Everything passes as it is.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kSlice;

}  // namespace cairn::drive
