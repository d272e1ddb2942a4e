// SPDX-License-Identifier: Apache-2.0
// parity: data on several drives, and parity of it on them too, so that any `parity` of them may be
// lost (Reed-Solomon; RAID 5 and 6 are parity=1 and parity=2). Parity rotates over the drives.
//
//   parity(DRIVE, DRIVE, ..., parity=1, chunk=64K, spares=0, degraded=no, rate=0, retry_ms=5000)
//
// Each leg keeps a label, a state and a log before its rows (parity_format.h). Blank legs become
// new ones when all are blank, and read as zeroes; existing legs are identified by their labels, in
// any order.
//
// The write hole. A crash in the middle of a change leaves some legs old and some new; if a leg is
// lost then too, its block, perhaps one that was not written, cannot be computed. So a change has
// two steps. First each leg that will change puts its own new block, data or parity, into its own
// log, durably; then each puts it into place. After a crash, opening decides for each change:
//
//   - A present leg lacks its part in its log: the second step had not begun. All places are old,
//     and the change is discarded.
//   - All present legs have their parts: the change is put into place. Lost legs do not matter. The
//     others, `data` at least, then have one code word, the new one, because legs without a part in
//     the change have the same block in both.
//
// A bitmap of intent would know only where to look; a copy of the parity alone, only one leg's
// loss. The log costs one more write of the same size on the same legs, none to others. When it is
// full, all legs are flushed and a new *epoch*, durable on all good legs, ends the old entries.
//
// So a write is durable when it completes, and one inside a chunk of at most atomic_blocks is
// atomic. Writes of whole stripes read nothing; others read the old data and parity,
// or the rest of the stripe, whichever is less. A large discard is one entry without blocks.
//
// A leg that fails a write is dropped: the others' labels say so, durably, before the write
// completes. It is retried every retry_ms and gets the writes that it missed; a spare replaces it
// if it does not come back. A drive that was missing at first is retried too, less and less often,
// or by the command `retry`. Legs beyond `parity` are never dropped: their errors are returned,
// writes that had begun are retried until they succeed, and others fail at once until then. A read
// that fails on one leg is computed from others and written back. Copy 1 of a block is the stored
// one, copy 2 is computed from other legs. The command `scrub` compares all data with parity and
// repairs differences: the one wrong block of a row if parity can identify it, otherwise the
// parity.
//
// A cancelled write may still be carried out; reads of its blocks wait for that.
//
// Refuses to open, and writes nothing, if a leg has other data or belongs to another parity; if
// legs were used without each other (split brain); if a leg is missing that has all data, as far as
// the present ones know, unless degraded=yes; if more legs are lost than parity replaces; if
// `parity` or `chunk` differ from those it was made with; if sizes do not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kParity;

// The state of a parity, for display. Accepts any drive; none: it is not one.
struct ParityStatus {
  size_t good = 0;     // legs with all data
  size_t copying = 0;  // legs that are catching up
  size_t lost = 0;     // legs that fail, or are missing
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
