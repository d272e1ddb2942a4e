// SPDX-License-Identifier: Apache-2.0
#include "drive/shared_ranges.h"

#include "base/check.h"
#include "env/call.h"

namespace cairn::drive {

SharedRanges::SharedRanges(uint32_t cores) {
  for (uint32_t core = 0; core < cores; ++core) cores_.push_back(std::make_unique<Ranges>());
}

namespace {

task::Task<void> enter_here(Ranges::Hold& hold) {
  const Result<void> held = co_await hold;
  CHECK(held.has_value(), "holding without a token ends in holding");
}

}  // namespace

task::Task<void> SharedRanges::Alone::enter(env::Env& env) {
  for (uint32_t core = 0; core < holds_.size(); ++core) {
    co_await env::call_on(env, CoreId(core), [this, core](env::Env&) {
      holds_[core].emplace(ranges_.on(CoreId(core)), Ranges::Mode::kExclusive, first_, count_);
      return enter_here(*holds_[core]);
    });
  }
}

task::Task<void> SharedRanges::Alone::leave(env::Env& env) {
  for (uint32_t core = 0; core < holds_.size(); ++core) {
    co_await env::call_on(env, CoreId(core), [this, core](env::Env&) { holds_[core].reset(); });
  }
}

}  // namespace cairn::drive
