// SPDX-License-Identifier: Apache-2.0
// Allocator: gets extents that are written for the first time their places, many in one call.
//
// Whoever writes forward gets the next ones along with the one that it needs, ever more of them.
// While no arbiter answers, callers wait: a few at a time are all that a door lets in.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/arbiter_link.h"
#include "volume/lease.h"
#include "volume/table.h"

namespace cairn::volume {

struct AllocatorOptions {
  uint32_t ahead_max = 16;  // extents that nobody asked for yet
  Duration retry = 200_ms;
  Duration call_limit = 5_s;
};

class Allocator {
 public:
  // All outlive it.
  Allocator(env::Env& env, ArbiterLink& link, Lease& lease, Table& table, AllocatorOptions options)
      : env_(env), link_(link), lease_(lease), table_(table), options_(options) {}

  // Until the extent has a place. kNoSpace: the pool is full; kDenied: the lease is lost; by the
  // token.
  task::Task<Result<void>> map(uint32_t extent, task::CancelToken token);

  // Writes wait since then for an arbiter that does not answer; never: none does.
  Time waiting_since() const { return waiting_since_; }
  uint64_t calls() const { return calls_; }
  task::Task<void> close();

 private:
  struct Waiter : ListHook<> {
    uint32_t extent = 0;
    Result<void> result;
    task::Event done;
  };
  task::Task<void> work();
  task::Task<void> serve_once();
  std::vector<uint32_t> batch(bool with_ahead);
  void answer(const std::vector<uint32_t>& extents, const Result<void>& result);

  env::Env& env_;
  ArbiterLink& link_;
  Lease& lease_;
  Table& table_;
  const AllocatorOptions options_;
  List<Waiter> waiters_;
  bool is_working_ = false;
  uint32_t next_ = 0;   // behind the last one that was got
  uint32_t ahead_ = 0;  // how many are got along now
  Time waiting_since_ = Time::never();
  uint64_t calls_ = 0;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::volume
