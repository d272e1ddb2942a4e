// SPDX-License-Identifier: Apache-2.0
// parity: data on several drives, and parity of it on them too, so that any `parity` of them may be
// lost (Reed-Solomon; RAID 5 and 6 are parity=1 and parity=2). Parity rotates over the drives.
//
//   parity(DRIVE, DRIVE, ..., parity=1, chunk=64K, spares=0, degraded=no, rate=0, retry_ms=5000)
//
// Each leg keeps a label, a state and a log before its rows (parity_format.h). Blank legs become
// new ones when all are blank, and read as zeroes; legs that exist are known by their labels, in
// any order.
//
// The write hole. A crash in the middle of a change leaves some legs old and some new; if a leg is
// lost then too, its block, perhaps one that nobody wrote, cannot be computed. So a change has two
// steps. First each leg that will change puts its own new block, data or parity, into its own log,
// durably; then each puts it into its place. What a crash leaves is judged when the drive opens:
//
//   - A leg that is there lacks its part in its log: the second step had not begun. All places are
//     old, and the change is forgotten.
//   - All legs that are there have theirs: it is put into place. Legs that are lost do not matter.
//     The others, `data` at least, then hold one word of the code, the new one, because those that
//     have no part in the change hold the same in both.
//
// A bitmap of intent would know only where to look; a copy of the parity alone, only one leg's
// loss. The log costs one more write of the same size on the same legs, none to others. When it is
// full, all legs are flushed and a new *epoch*, durable on all good legs, ends the old entries.
//
// So a write is durable when it completes, and one inside a chunk of at most atomic_blocks happens
// wholly or not at all. Writes of whole stripes read nothing; others read the old data and parity,
// or the rest of the stripe, whichever is less. A large discard is one entry without blocks.
//
// A leg that fails a write is dropped: the others' labels say so, durably, before the write
// completes. It is tried again every retry_ms and gets what it missed; a spare takes its place if
// it does not come back. A drive that was not there at first is tried too, ever more rarely, or by
// the command `retry`. Legs beyond `parity` are never dropped: their errors go up, writes that
// had begun are tried again until they succeed, and others fail at once until then. A read that
// fails on one leg is computed from others and written back. Copy 1 of a block is the stored one,
// copy 2 is computed from other legs. `scrub` as a command compares all data with parity and mends
// what differs: the one wrong block of a row when parity can tell which, else the parity.
//
// A write that is cancelled may be carried out nevertheless; reads of its blocks wait for that.
//
// Does not open (nothing is written): a leg that holds something else or belongs to other parity;
// legs that went on without each other (split brain); a missing leg that has all data, as far as
// those present know, unless degraded=yes; more legs lost than parity replaces; another number of
// parity or another chunk than it was made with; sizes that do not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kParity;

// How it is, to be shown. Any drive can be asked; none: it is no parity.
struct ParityStatus {
  size_t good = 0;     // legs with all data
  size_t copying = 0;  // legs that are being brought up to date
  size_t lost = 0;     // legs that fail, or are not there
  size_t spares = 0;
  size_t regions = 0;
  size_t regions_missed = 0;   // that legs which are not good may lack
  size_t regions_to_copy = 0;  // that are still to be copied to legs that are there
  uint64_t generation = 0;
  uint64_t epoch = 0;
  uint64_t computed = 0;  // times that blocks were computed because a leg did not give them
  uint64_t mended = 0;    // blocks that were written back because they were wrong or unreadable
};
std::optional<ParityStatus> parity_status(const Drive& drive);

}  // namespace cairn::drive
