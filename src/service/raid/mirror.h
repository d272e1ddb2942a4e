// SPDX-License-Identifier: Apache-2.0
// mirror: the same data on several drives (RAID 1). It serves as long as one of them does.
//
//   mirror(DRIVE, DRIVE, ..., spares=0, degraded=no, rate=0, retry_ms=5000)
//
// Each leg keeps a label and a bitmap before the data (mirror_format.h). Blank legs become a new
// mirror when all are blank; legs of an existing one are known by their labels, in any order.
//
// Writes go to all legs; before the first write of a region its bit is durable on all of them, so
// after a crash only marked regions are copied from one leg to the others. What is read before that
// is copied first: no block changes its mind, whichever leg is lost next. A leg that fails a write
// or flush is dropped: the others' labels say so, durably, before the write completes. It is tried
// again every retry_ms and gets what it missed; a spare takes its place if it does not come back. A
// drive that was not there when the mirror opened is tried too, ever more rarely, or by the command
// `retry`.
// The last leg with all data is never dropped: its errors go up. A read that fails on one leg is
// served by another and written back.
//
// Does not open (nothing is written): a leg that holds something else or belongs to another mirror;
// legs that each went on without the other (split brain); a missing leg that has all data, as far
// as those present know, unless degraded=yes; no leg with all data; sizes that no longer fit.
//
// A write that is cancelled, or fails on all legs, may leave them different: they are made equal in
// the background, or before they are read. rate is bytes per second of copying, 0: any. Holes are
// copied as holes, and new legs are alike where all have them, so thin legs stay thin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kMirror;

// How a mirror is, to be shown. Any drive can be asked; none: it is no mirror.
struct MirrorStatus {
  size_t good = 0;     // legs with all data
  size_t copying = 0;  // legs that are being brought up to date
  size_t lost = 0;     // legs that fail, or are not there
  size_t spares = 0;
  size_t regions = 0;
  size_t regions_marked = 0;   // may differ between legs, as far as the drives know
  size_t regions_to_copy = 0;  // that must be made equal
  uint64_t generation = 0;
};
std::optional<MirrorStatus> mirror_status(const Drive& drive);

}  // namespace cairn::drive
