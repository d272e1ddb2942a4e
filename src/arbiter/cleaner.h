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
#include <string>
#include <utility>
#include <vector>

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
  class Owner {
   public:
    virtual task::Task<Result<void>> fence_former_writer(task::CancelToken token) = 0;
    // Nobody else leads, or did at any time before this was called.
    virtual task::Task<Result<void>> confirm_leading() = 0;
    // Nobody who lost what it had may still write to the drive. What is given from now on to be
    // cleared there may be another's.
    virtual bool is_fenced(MegaVolId id) const = 0;
    // The extents are zero, durably.
    virtual task::Task<Result<void>> commit_cleaned(CleaningKey key,
                                                    std::vector<uint32_t> extents) = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it.
  Cleaner(env::Env& env, volume::MegaVolSource& source, Owner& owner, std::string host,
          Duration retry)
      : env_(env), source_(source), owner_(owner), host_(std::move(host)), retry_(retry) {}

  // Begins to work; once.
  void start(volume::MegaVolPool pool);
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
  Owner& owner_;
  const std::string host_;  // by which boxes know this leadership
  const Duration retry_;
  volume::MegaVolPool pool_;
  bool is_started_ = false;
  bool may_write_ = false;  // the former writer is fenced
  uint64_t waiting_ = 0;    // records
  std::map<MegaVolId, std::unique_ptr<CleaningQueue>> queues_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::arbiter
