// SPDX-License-Identifier: Apache-2.0
// JournalCheckpoint: the state of a journal's owner on its way to the half of the area that does
// not count yet, in parts, while changes go on. Internal to journal.h.
//
//   begin()          nothing of it is written; from here on it is told every change, by add()
//   write_parts()    all but a remainder of a block is written, without a flush
//   take()           the remainder, at one instant: with it the checkpoint has the state of now
//
// The journal then flushes and writes the remainder as its end, by which the half counts.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "drive/drive.h"
#include "drive/losses.h"
#include "env/env.h"
#include "service/common/claim.h"
#include "service/common/journal_chain.h"
#include "service/common/journal_owner.h"
#include "task/task.h"

namespace cairn::drive {

class JournalCheckpoint {
 public:
  // All outlive it.
  JournalCheckpoint(env::Env& env, Drive& drive, const JournalOwner& owner, const JournalId& id)
      : env_(env), drive_(drive), owner_(owner), id_(id) {}

  struct Half {
    uint64_t first = 0;  // block of the drive below
    uint64_t blocks = 0;
    uint64_t generation = 0;
  };
  void begin(const Half& half);
  bool has_begun() const { return has_begun_; }
  // The owner has made this change.
  void add(Bytes record) {
    if (has_begun_) records_.add(record);
  }
  // What is not written yet, in bytes.
  size_t waiting() const { return records_.size(); }
  // It is needed no more: write_parts() ends soon.
  void drop();

  // `memory` outlives the call; without a claim it does not look who else writes. False: state and
  // changes do not fit the half. kCancelled: it was dropped; else what the drive or the claim say.
  task::Task<Result<bool>> write_parts(MutableBytes memory, Claim* claim);
  // Whether the drive below may have lost parts that were not flushed.
  bool may_be_lost() const { return watch_.has_changed(drive_); }
  // Where the remainder is to be written.
  const JournalChain& chain() const { return chain_; }
  // Also what write_parts() did not come to, if it was not called. Ends it.
  JournalRecords take();

 private:
  void save_some(size_t bytes);

  env::Env& env_;
  Drive& drive_;
  const JournalOwner& owner_;
  const JournalId id_;

  bool has_begun_ = false;
  Half half_;
  Watch watch_;
  JournalChain chain_;
  std::optional<uint64_t> from_;  // the part that comes next
  JournalRecords records_;        // in the order in which they are replayed
};

}  // namespace cairn::drive
