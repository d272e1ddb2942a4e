// SPDX-License-Identifier: Apache-2.0
// Engine: a Keyspace over another one, which several tenants share; each in its turn, and no more
// commands at once than the drive below serves in time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/engine/scheduler.h"
#include "kv/keyspace.h"
#include "task/task.h"

namespace cairn::kv::engine {

// What commands cost. A change costs a PUT for each key, until it is known to erase only.
inline constexpr uint64_t kGetTokens = 3;
inline constexpr uint64_t kPutTokens = 8;
inline constexpr uint64_t kDelTokens = 4;

struct EngineOptions {
  SchedulerOptions scheduler;
  Duration wait_max = 5_s;  // for a turn; then kTimedOut
};

// One tenant's way to the keys that all see. Commands that are longer than all tokens together run
// alone. Beyond Keyspace's errors kLimit: too many of this tenant wait; kTimedOut: no turn came.
class Engine final : public Keyspace {
 public:
  // All outlive it. `below` is that of all tenants, and so is `scheduler`.
  Engine(env::Env& env, Keyspace& below, Scheduler& scheduler, uint32_t weight,
         const EngineOptions& options)
      : env_(env),
        below_(below),
        scheduler_(scheduler),
        tenant_(scheduler.add_tenant(weight)),
        options_(options) {}

  task::Task<Result<std::optional<Entry>>> get(std::string_view key) override;
  task::Task<Result<std::optional<Meta>>> look(std::string_view key) override;
  task::Task<Result<void>> transact(std::span<const std::string_view> keys,
                                    Change& change) override;
  task::Task<Result<ScanPage>> scan(uint64_t cursor, size_t count) override;
  task::Task<Result<std::optional<std::string>>> random_key() override;
  task::Task<Result<void>> clear() override;
  uint64_t size() const override { return below_.size(); }

  // What a reply tells its client: so much may be sent without waiting.
  uint64_t free_tokens() const { return scheduler_.free_tokens(tenant_); }
  const Scheduler::Tenant& tenant() const { return tenant_; }

 private:
  class Active;
  task::Task<Result<void>> wait(uint64_t cost);

  env::Env& env_;
  Keyspace& below_;
  Scheduler& scheduler_;
  Scheduler::Tenant& tenant_;
  const EngineOptions options_;
};

}  // namespace cairn::kv::engine
