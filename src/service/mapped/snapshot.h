// SPDX-License-Identifier: Apache-2.0
// snapshot: versions of a drive that stay as they were, and clones of them that can be written.
//
//   snapshot(DRIVE, chunk=0, reserve=20)
//
//   take [NAME]            a version of the drive as it is now; every write that completed is in it
//   list                   the versions and clones there are
//   remove V               a version, by number or name; its space comes back
//   clone V NAME           a drive of its own that begins as the version
//   remove clone:NAME
//   rollback V             the drive is as it was at V; later versions are removed
//
// open_view("3"), or a version's name, is that version, read-only; open_view("clone:NAME") is the
// clone, open once at a time. What is open, and what a clone stands on, cannot be removed.
//
// A write to a chunk that a version sees goes to a new place, with a copy of what it does not
// cover; all later ones go there directly (redirect on write). The map of places is a log of such
// changes, committed in groups, and is checkpointed in the background (journal.h); every command is
// one record of it, so a crash leaves it done or not. LeapIO's service writes all data to a log
// first and copies it to its place later: every block twice, and readers search the log. Here a
// block is written once, where it stays; a version costs nothing to take and nothing to read; the
// price is a copy of up to a chunk at the first write after a version, so chunks are small, and
// with `chunk` of one block there is no copying at all.
//
// chunk is the unit of places, a power of two; 0: 64K, smaller on drives below 16 MiB. reserve is
// the percentage of space that the drive does not show, so that versions have room; when all is in
// use, writes that need a place fail with kNoSpace and nothing is lost: remove a version. Both
// count when the drive is new.
//
// Does not open (nothing is written): a drive that holds something else, has become smaller, or is
// damaged; another chunk than it was made with.
#pragma once

#include "service/common/service.h"

namespace cairn::drive {

extern const Service kSnapshot;

}  // namespace cairn::drive
