// SPDX-License-Identifier: Apache-2.0
// Shares: the tenants of a store that others call over the network, each with its way to the store,
// and what their replies say of free tokens.
//
// What is there is divided among the tenants that were heard lately, by their weights, and a
// tenant's part among its callers. A tenant is told its own part even while others queue, less what
// it has in the queue itself; of what nobody wants it may have its part besides. So a caller that
// ignores what it is told, or pretends to be many, makes its own tenant wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "env/env.h"
#include "kv/engine/engine.h"
#include "kv/engine/scheduler.h"
#include "kv/keyspace.h"

namespace cairn::kv::engine {

// What a weight of 1 is to the scheduler, so that what owners do can have less.
inline constexpr uint32_t kWeightUnit = 8;
inline constexpr size_t kTenantsMax = 64;    // with names; the others are one together
inline constexpr size_t kCallersMax = 1024;  // of one tenant that are told apart
inline constexpr size_t kTenantNameMax = 64;
inline constexpr uint32_t kTenantWeightMax = 1000;

struct SharesOptions {
  EngineOptions engine;
  std::map<std::string, uint32_t, std::less<>> weights;  // of tenants that do not have 1
  Duration lately = 1_s;  // who was not heard for so long has no part
};

// One core. The store outlives it, and it outlives what goes through its engines.
class Shares {
 public:
  Shares(env::Env& env, Keyspace& store, const SharesOptions& options);

  // Who speaks: a caller of a tenant, by a number of its own.
  struct Caller {
    std::string_view tenant;
    uint64_t id = 0;
  };
  // The tenant's way to the store, and a note that the caller was heard. It stays.
  Engine& hear(Caller caller);
  // What a reply tells the caller: so many tokens it may use without waiting.
  uint32_t tokens_for(Caller caller);

  // For what a store's owner does by itself; in units of a tenant's weight by kWeightUnit.
  Engine& own(uint32_t weight);

  const Scheduler& scheduler() const { return scheduler_; }

 private:
  struct Tenant {
    Tenant(env::Env& env, Keyspace& store, Scheduler& scheduler, uint32_t weight,
           const EngineOptions& options)
        : engine(env, store, scheduler, weight, options) {}
    Engine engine;
    Time heard;
    std::map<uint64_t, Time> callers;
    Time forget_again;
  };
  Tenant& tenant_of(std::string_view name);
  void forget_callers(Tenant& tenant);
  bool is_active(const Tenant& tenant) const;

  env::Env& env_;
  Keyspace& store_;
  const SharesOptions options_;
  Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<Tenant>, std::less<>> tenants_;
  std::vector<std::unique_ptr<Engine>> own_;
};

}  // namespace cairn::kv::engine
