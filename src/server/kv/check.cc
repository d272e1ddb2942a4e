// SPDX-License-Identifier: Apache-2.0
#include "server/kv/check.h"

#include <memory>
#include <utility>

#include "base/units.h"
#include "kv/store/options.h"
#include "server/kv/store_problem.h"
#include "server/open/open_stack.h"

namespace cairn::server {

task::Task<Attempt<kv::store::CheckReport>> check_store(env::Env& env, std::string stack) {
  const Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(stack, LookUp::kWhenOpened);
  if (!plan) co_return std::unexpected(plan.error());
  Attempt<std::unique_ptr<drive::LiveStack>> drive = co_await (*plan)->open(env);
  if (!drive) co_return std::unexpected(drive.error());
  const Duration io_timeout = kv::store::StoreOptions().io_timeout;
  Result<kv::store::CheckReport> report = co_await kv::store::check(env, **drive, io_timeout);
  co_await (*drive)->close();
  drive->reset();
  (*plan)->close();
  if (!report) co_return std::unexpected(cannot_use_store(stack, report.error()));
  co_return std::move(*report);
}

}  // namespace cairn::server
