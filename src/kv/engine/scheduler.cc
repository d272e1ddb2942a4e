// SPDX-License-Identifier: Apache-2.0
#include "kv/engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::kv::engine {

namespace {

constexpr uint64_t kFinishScale = 1024;  // so that weights divide well
constexpr uint64_t kTokensStep = 8;
constexpr Duration kSeldom = 10_ms;

}  // namespace

Scheduler::Tenant& Scheduler::add_tenant(uint32_t weight) {
  CHECK(weight > 0);
  return *tenants_.emplace_back(std::make_unique<Tenant>(weight));
}

void Turn::start() {
  if (tenant_.count_ == 0 && scheduler_.waiting_ == 0 && scheduler_.has_room(cost_)) {
    tenant_.wanted_ += cost_;
    scheduler_.grant(tenant_, cost_);
    return complete({});
  }
  if (tenant_.count_ >= scheduler_.options_.waiting_max) {
    return complete(fail(Errc::kLimit, "too many commands wait for the drive"));
  }
  // Who had nothing to do has no claim on what others had meanwhile.
  if (tenant_.count_ == 0) tenant_.finish_ = std::max(tenant_.finish_, scheduler_.finish_);
  tenant_.waiting_.push_back(*this);
  tenant_.wanted_ += cost_;
  ++tenant_.count_;
  ++scheduler_.waiting_;
}

void Turn::cancel() {
  ListHook<>::unlink();
  tenant_.wanted_ -= cost_;
  --tenant_.count_;
  --scheduler_.waiting_;
  complete(cancelled());
  scheduler_.serve();
}

void Scheduler::grant(Tenant& tenant, uint64_t cost) {
  active_ += cost;
  tenant.served_ += cost;
  finish_ = std::max(finish_, tenant.finish_);
  tenant.finish_ = std::max(tenant.finish_, finish_) + cost * kFinishScale / tenant.weight_;
}

void Scheduler::serve() {
  while (waiting_ > 0) {
    Tenant* next = nullptr;
    for (const auto& tenant : tenants_) {
      if (tenant->count_ == 0) continue;
      if (next == nullptr || tenant->finish_ < next->finish_) next = tenant.get();
    }
    Turn* turn = next->waiting_.front();
    if (!has_room(turn->cost_)) return;
    next->waiting_.pop_front();
    --next->count_;
    --waiting_;
    grant(*next, turn->cost_);
    turn->complete({});
  }
}

// More while they are used and commands are quick, fewer when they are slow; once in the time that
// a change needs to show. Callers who heed tokens never let anybody wait, so use is what counts;
// and a drive that was slow gets back what it had at first, as it would not be asked for more
// otherwise.
void Scheduler::adapt(Duration latency) {
  // Of few commands each says more: the drive may be another one since the last.
  const int64_t weight = env_.now() - last_done_ > kSeldom ? 4 : 16;
  last_done_ = env_.now();
  mean_latency_ =
      mean_latency_.ns == 0 ? latency : (mean_latency_ * (weight - 1) + latency) / weight;
  if (env_.now() < adapt_again_) return;
  const bool is_quick = mean_latency_ * 2 <= options_.latency_target;
  const bool was_more = tokens_ < options_.tokens_max / 4;
  if (mean_latency_ > options_.latency_target) {
    tokens_ = std::max(options_.tokens_min, tokens_ - tokens_ / 8);
  } else if (waiting_ > 0 || active_ * 2 >= tokens_ || (is_quick && was_more)) {
    tokens_ = std::min(options_.tokens_max, tokens_ + kTokensStep);
  }
  adapt_again_ = env_.now() + mean_latency_;
}

void Scheduler::done(Tenant& tenant, uint64_t cost, Duration latency) {
  adapt(latency);
  give_back(tenant, cost);
}

void Scheduler::give_back(Tenant& tenant, uint64_t cost) {
  CHECK(cost <= active_);
  CHECK(cost <= tenant.wanted_);
  active_ -= cost;
  tenant.wanted_ -= cost;
  serve();
}

uint64_t Scheduler::free_tokens(const Tenant& tenant) const {
  uint64_t weights = 0;
  for (const auto& one : tenants_) weights += one->weight_;
  return free_tokens() * tenant.weight_ / weights;
}

}  // namespace cairn::kv::engine
