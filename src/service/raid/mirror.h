// SPDX-License-Identifier: Apache-2.0
// mirror: the same data on several drives (RAID 1). It works as long as one of them does.
//
//   mirror(DRIVE, DRIVE, ..., spares=0, degraded=no, rate=0, retry_ms=5000)
//
// Each leg keeps a label and a bitmap before the data (mirror_format.h). Blank legs become a new
// mirror when all are blank; legs of an existing one are identified by their labels, in any order.
//
// Writes go to all legs; before the first write of a region its bit is durable on all of them, so
// after a crash only marked regions are copied from one leg to the others. A block that is read
// before that is copied first, so data that was read stays, whichever leg is lost next. A leg that
// fails a write or flush is dropped: the others' labels say so, durably, before the write
// completes. The mirror retries it every retry_ms and copies the writes that it missed; a spare
// replaces it if it does not come back. A drive that was missing when the mirror opened is retried
// too, less and less often, or by the command `retry`. The last leg with all data is never dropped:
// its errors are returned. A read that fails on one leg is served by another and written back.
//
// Refuses to open, and writes nothing, if a leg has other data or belongs to another mirror; if
// legs were each used without the other (split brain); if a leg is missing that has all data, as
// far as the present ones know, unless degraded=yes; if no leg has all data; if sizes no longer
// fit.
//
// A write that is cancelled, or fails on all legs, may leave them different: they are made equal in
// the background, or before they are read. rate is bytes per second of copying, 0: no limit. Holes
// are copied as holes, and new legs are equal where all have them, so thin legs stay thin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kMirror;

// The state of a mirror, for display. Accepts any drive; none: it is not a mirror.
struct MirrorStatus {
  size_t good = 0;     // legs with all data
  size_t copying = 0;  // legs that are catching up
  size_t lost = 0;     // legs that fail, or are missing
  size_t spares = 0;
  size_t regions = 0;
  size_t regions_marked = 0;   // may differ between legs, as far as the drives know
  size_t regions_to_copy = 0;  // that must be made equal
  uint64_t generation = 0;
};
std::optional<MirrorStatus> mirror_status(const Drive& drive);

}  // namespace cairn::drive
