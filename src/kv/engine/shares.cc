// SPDX-License-Identifier: Apache-2.0
#include "kv/engine/shares.h"

#include <algorithm>

namespace cairn::kv::engine {

Shares::Shares(env::Env& env, Keyspace& store, const SharesOptions& options)
    : env_(env), store_(store), options_(options), scheduler_(env, options.engine.scheduler) {}

Engine& Shares::own(uint32_t weight) {
  return *own_.emplace_back(
      std::make_unique<Engine>(env_, store_, scheduler_, weight, options_.engine));
}

Shares::Tenant& Shares::tenant_of(std::string_view name) {
  const auto weighted = options_.weights.find(name);
  const bool is_known = tenants_.contains(name) || weighted != options_.weights.end();
  // Those that are too many are the one without a name.
  if (!is_known && (tenants_.size() >= kTenantsMax || name.size() > kTenantNameMax)) name = "";
  const auto found = tenants_.find(name);
  if (found != tenants_.end()) return *found->second;
  const uint32_t times = weighted == options_.weights.end() ? 1 : weighted->second;
  const uint32_t weight = kWeightUnit * std::clamp(times, 1U, kTenantWeightMax);
  return *tenants_
              .emplace(std::string(name),
                       std::make_unique<Tenant>(env_, store_, scheduler_, weight, options_.engine))
              .first->second;
}

bool Shares::is_active(const Tenant& tenant) const {
  return env_.now() - tenant.heard < options_.lately || tenant.engine.tenant().wanted() > 0;
}

void Shares::forget_callers(Tenant& tenant) {
  if (env_.now() < tenant.forget_again) return;
  tenant.forget_again = env_.now() + options_.lately / 4;
  std::erase_if(tenant.callers, [this](const auto& caller) {
    return env_.now() - caller.second >= options_.lately;
  });
}

Engine& Shares::hear(Caller caller) {
  Tenant& tenant = tenant_of(caller.tenant);
  tenant.heard = env_.now();
  forget_callers(tenant);
  const auto known = tenant.callers.find(caller.id);
  if (known != tenant.callers.end()) {
    known->second = env_.now();
  } else if (tenant.callers.size() < kCallersMax) {
    tenant.callers.emplace(caller.id, env_.now());
  }
  return tenant.engine;
}

uint32_t Shares::tokens_for(Caller caller) {
  const Tenant& tenant = tenant_of(caller.tenant);
  uint64_t weights = 0;
  for (const auto& [name, each] : tenants_) {
    if (each.get() == &tenant || is_active(*each)) weights += each->engine.tenant().weight();
  }
  // What the owner does is done for callers too, but never takes all.
  uint64_t owned = 0;
  for (const auto& each : own_) owned += each->tenant().wanted();
  const uint64_t tokens = scheduler_.tokens() - std::min(owned, scheduler_.tokens() / 2);
  const uint64_t weight = tenant.engine.tenant().weight();
  const uint64_t mine = tokens * weight / weights;
  const uint64_t wanted = tenant.engine.tenant().wanted();
  const uint64_t left = mine > wanted ? mine - wanted : 0;
  const uint64_t spare = scheduler_.free_tokens() * weight / weights;
  const uint64_t callers = std::max<uint64_t>(1, tenant.callers.size());
  return static_cast<uint32_t>(std::min<uint64_t>(std::max(left, spare) / callers, UINT32_MAX));
}

}  // namespace cairn::kv::engine
