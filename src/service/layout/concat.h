// SPDX-License-Identifier: Apache-2.0
// concat: drives one after the other, as one that is as large as all of them.
//
//   concat(FIRST, SECOND, ...)
//
// Their order is part of the data: name them in the same order each time. All have the same block
// size, or it does not open (kInvalid). Requests that cross from one drive to the next run on both
// side by side.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kConcat;

}  // namespace cairn::drive
