// SPDX-License-Identifier: Apache-2.0
// Drives: they come into the pool and leave it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "arbiter/cleaner.h"
#include "arbiter/fence.h"
#include "arbiter/pool_store.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/mega_vol.h"

namespace cairn::arbiter {

struct AddArgs {
  std::string uri;
  std::string box;   // empty, or a name
  std::string rack;  // the same
  int32_t preference = 0;
  bool may_format = false;  // although something is on the drive
};

class Drives {
 public:
  // All outlive it. Clients know drives by their numbers for as long as a lease.
  Drives(env::Env& env, PoolStore& store, volume::MegaVolSource& source, Fence& fence,
         Cleaner& cleaner, Duration lease)
      : env_(env),
        store_(store),
        pool_(store.pool()),
        source_(source),
        fence_(fence),
        cleaner_(cleaner),
        lease_(lease) {}

  // Once the pool is read.
  void start();

  // kExists: it is a member; kInvalid also when it holds something and may not be formatted;
  // kUnsupported: nobody can be fenced at its box.
  task::Task<Result<MegaVolInfo>> add(AddArgs args, task::CancelToken token);
  // It gets no more extents, and whoever has a volume open moves those that it has; or it stays
  // after all. kNoSpace: the others could not take what is promised.
  task::Task<Result<void>> drain(MegaVolId id, bool is_leaving);
  // Takes it out of the pool. kExists: extents of volumes are there. Of one that `is_lost`, what is
  // to be cleared stays as it is.
  task::Task<Result<void>> remove(MegaVolId id, bool is_lost, task::CancelToken token);

 private:
  // Label and clear space on a drive that joins, without anybody who may still write to it.
  task::Task<Result<void>> make_member(drive::Drive& drive, const AddArgs& args, MegaVolInfo& info,
                                       task::CancelToken token);
  // Of the next drive; none: all are taken.
  std::optional<MegaVolId> free_number();

  env::Env& env_;
  PoolStore& store_;
  Pool& pool_;
  volume::MegaVolSource& source_;
  Fence& fence_;
  Cleaner& cleaner_;
  const Duration lease_;
  std::map<MegaVolId, Time> removed_;  // drives that left, and when
  task::Semaphore adding_{1};
};

}  // namespace cairn::arbiter
