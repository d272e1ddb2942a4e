// SPDX-License-Identifier: Apache-2.0
// Scheduler: so many tokens as a drive serves in time, and fair turns at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "env/env.h"
#include "task/operation.h"

namespace cairn::kv::engine {

class Turn;

struct SchedulerOptions {
  Duration latency_target = 2_ms;  // of commands; slower: fewer tokens
  uint64_t tokens_min = 32;
  uint64_t tokens_max = 8192;
  size_t waiting_max = 4096;  // of one tenant; more are refused
};

// On one core. Outlives its turns.
class Scheduler {
 public:
  Scheduler(env::Env& env, const SchedulerOptions& options)
      : env_(env), options_(options), tokens_(options.tokens_max / 4) {}

  // Gets turns in proportion to its weight while others want them too. They stay.
  class Tenant {
   public:
    explicit Tenant(uint32_t weight) : weight_(weight) {}
    size_t waiting() const { return count_; }
    uint64_t served() const { return served_; }  // tokens
    // Tokens that its commands have, or wait for.
    uint64_t wanted() const { return wanted_; }
    uint32_t weight() const { return weight_; }

   private:
    friend class Scheduler;
    friend class Turn;
    const uint32_t weight_;
    List<Turn> waiting_;
    size_t count_ = 0;
    uint64_t served_ = 0;
    uint64_t wanted_ = 0;
    uint64_t finish_ = 0;
  };
  // `weight` is at least 1.
  Tenant& add_tenant(uint32_t weight);

  // Waits for `cost` tokens; who has them must return them. kLimit: too many wait; by the token.
  Turn take(Tenant& tenant, uint64_t cost, task::CancelToken token);
  // After so much time at work.
  void done(Tenant& tenant, uint64_t cost, Duration latency);
  // Some of them are not needed after all.
  void give_back(Tenant& tenant, uint64_t cost);

  uint64_t tokens() const { return tokens_; }
  uint64_t active() const { return active_; }
  // That nobody has or waits for.
  uint64_t free_tokens() const {
    return active_ >= tokens_ || waiting_ > 0 ? 0 : tokens_ - active_;
  }
  // What a tenant may send without waiting: its part of what is free.
  uint64_t free_tokens(const Tenant& tenant) const;

 private:
  friend class Turn;
  bool has_room(uint64_t cost) const { return active_ == 0 || active_ + cost <= tokens_; }
  void grant(Tenant& tenant, uint64_t cost);
  void serve();
  void adapt(Duration latency);

  env::Env& env_;
  const SchedulerOptions options_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
  uint64_t tokens_;
  uint64_t active_ = 0;
  size_t waiting_ = 0;
  uint64_t finish_ = 0;  // of the tenant that was served last
  Duration mean_latency_;
  Time last_done_;
  Time adapt_again_;
};

class Turn final : public task::Operation<void>, public ListHook<> {
 public:
  Turn(Scheduler& scheduler, Scheduler::Tenant& tenant, uint64_t cost, task::CancelToken token)
      : Operation(token), scheduler_(scheduler), tenant_(tenant), cost_(cost) {}

 private:
  friend class Scheduler;
  void start() override;
  void cancel() override;
  Scheduler& scheduler_;
  Scheduler::Tenant& tenant_;
  const uint64_t cost_;
};

inline Turn Scheduler::take(Tenant& tenant, uint64_t cost, task::CancelToken token) {
  return {*this, tenant, cost, token};
}

}  // namespace cairn::kv::engine
