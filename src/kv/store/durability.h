// SPDX-License-Identifier: Apache-2.0
// Durability: when what was committed survives a crash, and the cheapest way there.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/store/block_io.h"
#include "task/task.h"

namespace cairn::kv::store {

enum class Durability : uint8_t {
  kCommit,    // when it is acknowledged
  kInterval,  // so long after it at most
  kNone,      // whenever the drive likes, and at checkpoints
};

// Of commits that are to be durable one by one, either each write is (FUA), or a flush follows.
// Which costs less differs between drives; now and then the other way is tried and both are timed.
class Syncer {
 public:
  Syncer(env::Env& env, BlockIo& io, bool has_volatile_cache, Durability mode)
      : env_(env), io_(io), has_volatile_cache_(has_volatile_cache), mode_(mode) {}

  Durability mode() const { return mode_; }
  // Whether the writes of a commit that begins now are to be durable by themselves.
  bool wants_durable_writes() {
    if (!is_needed()) return false;
    const bool cheaper = took_[1].ns < took_[0].ns;
    return ++asked_ % kTrialEvery == 0 ? !cheaper : cheaper;
  }
  // Whether a commit waits until it is durable, and something has to be done for that.
  bool is_needed() const { return mode_ == Durability::kCommit && has_volatile_cache_; }
  void took(bool durable_writes, Duration time) {
    Duration& mean = took_[durable_writes ? 1 : 0];
    mean = mean.ns == 0 ? time : (mean * 7 + time) / 8;
  }

  // All writes that completed before are durable, if losses() was the same when the first began. A
  // drive without a volatile cache needs no flush.
  task::Task<Result<void>> flush() {
    if (!has_volatile_cache_) co_return Result<void>();
    const Result<void> done = co_await io_.flush();
    if (!done) ++losses_;
    co_return done;
  }
  // Flushes that failed: of what completed before one of them nothing is known, whatever the next
  // flush says.
  uint64_t losses() const { return losses_; }
  Time now() const { return env_.now(); }

 private:
  static constexpr uint64_t kTrialEvery = 64;

  env::Env& env_;
  BlockIo& io_;
  const bool has_volatile_cache_;
  const Durability mode_;
  std::array<Duration, 2> took_{};  // by flush, by durable writes
  uint64_t asked_ = 0;
  uint64_t losses_ = 0;
};

}  // namespace cairn::kv::store
