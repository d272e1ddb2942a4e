// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/stack_source.h"

#include <utility>

#include "env/call.h"

namespace cairn::apps {

task::Task<Attempt<std::unique_ptr<StackSource>>> StackSource::open_on(
    env::Env& env, CoreId home, std::unique_ptr<StackPlan> plan) {
  std::unique_ptr<StackSource> source(new StackSource(std::move(plan)));
  StackSource& opening = *source;
  const Attempt<void> opened = co_await env::call_on(
      env, home, [&opening](env::Env& there) { return opening.open_here(there); });
  if (!opened) co_return std::unexpected(opened.error());
  co_return source;
}

task::Task<Attempt<void>> StackSource::open_here(env::Env& home) {
  Attempt<std::unique_ptr<drive::Drive>> drive = co_await plan_->open(home);
  if (!drive) {
    plan_->close();
    co_return std::unexpected(drive.error());
  }
  drive_ = std::make_unique<drive::SharedDrive>(home, std::move(*drive));
  co_return Attempt<void>();
}

task::Task<void> StackSource::close(env::Env& env) {
  co_await drive_->close(env);
  co_await env::call_on(env, drive_->core(), [this](env::Env&) { plan_->close(); });
}

}  // namespace cairn::apps
