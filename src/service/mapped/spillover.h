// SPDX-License-Identifier: Apache-2.0
// spillover: a local drive, and what does not fit it on a drive elsewhere.
//
//   spillover(LOCAL, ELSEWHERE, chunk=0, rate=0, drain_ms=1000)
//
// The drive has the space of both. A chunk takes its place when it is first written: on the local
// drive while that has room, elsewhere otherwise. When discards make room, chunks drain back in the
// background after drain_ms, one at a time, at `rate` bytes per second (0: any); each is copied
// while nobody uses it, and a record of the journal moves it, so a crash leaves it here or there,
// whole.
//
// Requests go where their chunks are: with a slow or lost drive elsewhere, those on the local one
// go on as before, and others get its errors. A drive elsewhere that cannot be opened is lost until
// the stack is opened again; its chunks are kept for it.
//
// The journal with the map is on the local drive; both carry a label with the same id. chunk is a
// power of two, 0: 1M, smaller on drives below 256 MiB, and counts when the drives are new.
//
// Does not open (nothing is written): drives that hold something else, are not a pair, are in the
// wrong order, have become smaller, or are damaged; a blank drive in place of one that has chunks;
// no local drive.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kSpillover;

}  // namespace cairn::drive
