// SPDX-License-Identifier: Apache-2.0
// Cleaner: clears extents that were given back, and only then lets them count as free.
//
// It clears durably, then commits. A crash in between clears again, which does no harm as long as
// nobody else may own the extent by then: so a host that led before is fenced from the drive first.
// So is every host that lost a volume, for what it sent late may land in an extent of the volume.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "arbiter/fencing.h"
#include "arbiter/pool_store.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/mega_vol.h"

namespace cairn::arbiter {

class Cleaner final : public FreedExtents {
 public:
  // All outlive it. What fails is tried again after `retry`.
  Cleaner(env::Env& env, volume::MegaVolSource& source, PoolStore& store, Fencing& fencing,
          Duration retry)
      : env_(env), source_(source), store_(store), fencing_(fencing), retry_(retry) {}

  // Begins to work; once, when the pool is read.
  void start();
  void add(const MegaVolInfo& drive, Cleaning what) override;
  // Nothing of this drive is cleared any more when it returns.
  task::Task<void> forget(MegaVolId id);
  uint64_t waiting() const { return waiting_; }
  task::Task<void> close();

 private:
  // A drive with something to clear.
  struct CleaningQueue {
    MegaVolInfo info;
    std::deque<Cleaning> todo;
    std::unique_ptr<drive::Drive> drive;  // null: it is to be opened
    task::CancelSource stop;
    task::Event idle;
    bool is_running = false;
    explicit CleaningQueue(MegaVolInfo its_info, task::CancelToken parent)
        : info(std::move(its_info)), stop(parent) {}
  };
  void wake(CleaningQueue& queue);
  task::Task<void> work(CleaningQueue& queue);
  task::Task<Result<void>> clean_one(CleaningQueue& queue);
  task::Task<Result<void>> clear(CleaningQueue& queue, const Cleaning& what);

  env::Env& env_;
  volume::MegaVolSource& source_;
  PoolStore& store_;
  Fencing& fencing_;
  const Duration retry_;
  bool is_started_ = false;
  bool may_write_ = false;  // the former writer is fenced
  uint64_t waiting_ = 0;    // records
  std::map<MegaVolId, std::unique_ptr<CleaningQueue>> queues_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::arbiter
