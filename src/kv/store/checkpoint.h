// SPDX-License-Identifier: Apache-2.0
// Checkpoints: the segment table on the drive, so that recovery reads little of the key log.
#pragma once

#include <optional>

#include "base/error.h"
#include "kv/store/core.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::store {

// One at a time; changes go on meanwhile. What changes between two pages is in the key log behind
// the checkpoint's beginning, and is found there again.
class Checkpointer {
 public:
  explicit Checkpointer(Core& core) : core_(core) {}

  // Then recovery begins at the key log's tail of now. Errors of the drive, or kDenied: another
  // process has opened it (label.h); the older checkpoint stays in force.
  task::Task<Result<void>> save();
  // Instead of all that there is: nothing. Nobody writes meanwhile. After an error nothing more is
  // committed, for it is not known which of the two is in force.
  task::Task<Result<void>> save_empty();

 private:
  task::Task<Result<void>> write_table(uint64_t number);
  task::Task<Result<void>> write_superblock(Checkpoint checkpoint);
  Checkpoint now(uint64_t number) const;

  Core& core_;
  task::Semaphore one_{1};
  std::optional<Checkpoint> unsure_;  // its superblock was written, and the write failed
};

}  // namespace cairn::kv::store
