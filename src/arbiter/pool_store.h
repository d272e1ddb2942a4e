// SPDX-License-Identifier: Apache-2.0
// PoolStore: the pool of one leadership, in memory and in the metadata store.
//
// It is changed by one commit after the other, each fenced by the leadership, and in memory only
// after the commit. When a commit fails, or may have failed, nothing more is changed: whoever runs
// the arbiter (arbiter_host.h) leads anew and reads the store again.
//
//   const Result<task::Units> turn = co_await store.take_turn();   // until `turn` goes
//   if (!turn) co_return fail(turn.error());
//   ...                                     // look at pool(), decide
//   const Result<void> done = co_await store.commit(std::move(batch));
//   if (done) ...                           // the same change of pool()
//
// kUnreachable: this arbiter does not lead; kTimedOut: a commit was not confirmed. One core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/pool.h"
#include "arbiter/record_format.h"
#include "env/env.h"
#include "meta/election.h"
#include "meta/store.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/mega_vol.h"

namespace cairn::arbiter {

// Extents of one drive that nobody has any more, as they are recorded.
struct Cleaning {
  CleaningKey key;
  std::vector<uint32_t> extents;
};

// Whoever clears them: they are free when commit_cleaned() has said so.
class FreedExtents {
 public:
  virtual void add(const MegaVolInfo& drive, Cleaning what) = 0;

 protected:
  ~FreedExtents() = default;
};

class PoolStore {
 public:
  // All outlive it; by `host` boxes know this leadership.
  PoolStore(env::Env& env, meta::Store& store, meta::Leadership& leadership, std::string host)
      : env_(env),
        store_(store),
        leadership_(leadership),
        host_(std::move(host)),
        broken_(leadership.lost_token()),
        stop_(broken_.token()) {}

  // Once, before all else: what the store has, or a new pool with extents of that size. `freed`,
  // which outlives it, gets what is to be cleared, then and later. kCorrupt, kUnsupported: the
  // store has something that this version does not understand; errors of it.
  task::Task<Result<void>> read(uint64_t extent_bytes, FreedExtents& freed,
                                task::CancelToken token);

  // Changed only by whoever has the turn, and as it was committed.
  Pool& pool() { return pool_; }
  const Pool& pool() const { return pool_; }
  const std::string& host() const { return host_; }
  // The host that led before and may still write to drives; empty: this one, or nobody.
  const std::string& former_writer() const { return former_writer_; }

  // False is final: another may lead, and know better.
  bool is_working() const { return !broken_.requested() && leadership_.is_leader(); }
  // Requested when nothing can be committed any more.
  task::CancelToken broken_token() { return broken_.token(); }
  // No turn is given any more; stop_token() is requested then, and when it is broken.
  void stop() { stop_.request(); }
  task::CancelToken stop_token() { return stop_.token(); }
  bool is_stopping() const { return stop_.requested(); }

  // Of whoever changes the pool, first come, first served.
  task::Task<Result<task::Units>> take_turn();
  // By whoever has the turn, as all that follow but the last two.
  task::Task<Result<void>> commit(meta::Batch batch);
  // Entries of a volume, all together, in the pool too; legs that nobody has any more are to be
  // cleared.
  task::Task<Result<void>> commit_changes(VolumeId id, std::vector<Change> changes,
                                          meta::Batch batch = {});
  task::Task<Result<void>> commit_record(VolumeRecord record);
  // Places where extents of a volume were being copied are given back.
  task::Task<Result<void>> drop_copies(VolumeId id);
  // The one that led before is fenced.
  task::Task<Result<void>> become_writer();
  // What is recorded to be cleared on a drive goes; the last of it is left to the batch.
  task::Task<Result<void>> remove_cleanings(MegaVolId id, meta::Batch& batch);
  // They take the turn themselves. The extents are zero, durably.
  task::Task<Result<void>> commit_cleaned(CleaningKey key, std::vector<uint32_t> extents);
  // Nobody else leads, or did at any time before this was called.
  task::Task<Result<void>> confirm_leading();

  // kNotFound: there is none, or it is being destroyed.
  Result<Volume*> find(const std::string& name);
  std::vector<MegaVolInfo> mega_vols() const;
  volume::MegaVolPool identity() const {
    return {.uuid = pool_.record.uuid, .extent_bytes = pool_.record.extent_bytes};
  }
  // As records say when something was made.
  uint64_t seconds_now() const {
    return static_cast<uint64_t>(std::max<int64_t>(0, env_.wall_now().ns / 1'000'000'000));
  }

 private:
  // And who may write to drives.
  task::Task<Result<void>> read_pool_record(uint64_t extent_bytes, task::CancelToken token);
  task::Task<Result<void>> read_maps(task::CancelToken token);
  task::Task<Result<void>> read_cleanings(task::CancelToken token);

  env::Env& env_;
  meta::Store& store_;
  meta::Leadership& leadership_;
  const std::string host_;
  FreedExtents* freed_ = nullptr;  // from read() on
  Pool pool_;
  std::string former_writer_;
  uint64_t next_cleaning_ = 1;
  task::Semaphore turn_{1};
  task::CancelSource broken_;
  task::CancelSource stop_;
};

}  // namespace cairn::arbiter
