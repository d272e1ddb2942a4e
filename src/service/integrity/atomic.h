// SPDX-License-Identifier: Apache-2.0
// atomic: writes of several blocks that happen wholly or not at all, whatever the drive below does
// when power fails.
//
//   atomic(DRIVE, unit=64K, log=1M)
//
// A write or compare-and-write of up to `unit` is first written, durably, to a log that lies before
// the data, then in place; after a crash the log is put in place again before anything is read.
// Writes that arrive together share one write of the log. What the drive below writes atomically
// by itself goes there directly, and so do discards, write-zeroes and larger writes, which are torn
// between blocks at worst; where the log still holds their blocks it is emptied first.
//
// geometry().atomic_blocks is the unit, or the largest power of two that the drive below transfers
// at once. Writes of that size are whole on any boundary, for readers at the same time too. Writes
// that are logged are durable when they complete. One that is cancelled happens or does not; nobody
// sees it later than others saw that it had not.
//
// When the drive below fails while a write is put in place, the write fails, and everything that
// touches what is in the log fails until it could be put in place again: no half of it is read.
//
// Does not open (nothing is written): a drive below that holds something else, has become smaller,
// or has no room for the log and a unit. The log has the size it was made with.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kAtomic;

}  // namespace cairn::drive
