// SPDX-License-Identifier: Apache-2.0
// Snapshots: snapshots and clones have the extents of a volume together with it, until somebody
// writes one of them (copies.h).
#pragma once

#include <map>
#include <string>

#include "arbiter/fencing.h"
#include "arbiter/pool_store.h"
#include "arbiter/sessions.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::arbiter {

class Snapshots {
 public:
  // All outlive it. Whoever has a volume open has `limit` to stop writing.
  Snapshots(env::Env& env, PoolStore& store, Sessions& sessions, Fencing& fencing, Duration limit)
      : env_(env),
        store_(store),
        pool_(store.pool()),
        sessions_(sessions),
        fencing_(fencing),
        limit_(limit) {}

  // VOLUME@NAME, of what the volume holds from the call to its return at some time. Whoever has it
  // open stops writing for a moment. kNoSpace: nothing could be copied when it is written;
  // kTimedOut: whoever has it open did not answer; kInvalid also: the last one did not close it, or
  // with a loss that no flush had told of; kIo: there is such a loss; kLimit.
  task::Task<Result<VolumeRecord>> snapshot(std::string volume, std::string name,
                                            task::CancelToken token);
  // A volume that begins as a snapshot is. kNoSpace as for one that is new; kLimit.
  task::Task<Result<VolumeRecord>> clone(std::string snapshot, std::string name);
  // The volume was closed: a snapshot that waits for its holder is made without it.
  void holder_left(VolumeId id);

  // As ArbiterLink has them.
  task::Task<Result<volume::Asked>> asked(volume::Session session, Duration wait,
                                          task::CancelToken token);
  task::Task<Result<void>> freeze(volume::Session session, std::string snapshot, bool is_ready);

 private:
  struct Wanted;  // a snapshot that waits for whoever has the volume open

  task::Task<Result<VolumeRecord>> await_snapshot(Wanted& wanted, task::CancelToken token);
  // What a record of a volume is that begins with the extents of another. kExists, kLimit,
  // kNoSpace.
  Result<VolumeRecord> relative_of(const Volume& volume, std::string name, bool is_snapshot) const;
  // Makes it, with the map of the other. By whoever has the turn.
  task::Task<Result<VolumeRecord>> make_relative(VolumeId from, VolumeRecord record);

  env::Env& env_;
  PoolStore& store_;
  Pool& pool_;
  Sessions& sessions_;
  Fencing& fencing_;
  const Duration limit_;
  std::map<VolumeId, Wanted*> wanted_;
  task::Event wanted_moved_;  // a snapshot is wanted
};

}  // namespace cairn::arbiter
