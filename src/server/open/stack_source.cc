// SPDX-License-Identifier: Apache-2.0
#include "server/open/stack_source.h"

#include <set>
#include <utility>

#include "env/call.h"

namespace cairn::server {

task::Task<Attempt<std::unique_ptr<StackSource>>> StackSource::open_on(
    env::Env& env, CoreId home, std::unique_ptr<StackPlan> plan, Opening opening) {
  std::unique_ptr<StackSource> source(new StackSource(std::move(plan)));
  StackSource& made = *source;
  const Attempt<void> opened = co_await env::call_on(
      env, home, [&made, opening](env::Env& there) { return made.open_here(there, opening); });
  if (!opened) co_return std::unexpected(opened.error());
  co_return source;
}

task::Task<Attempt<void>> StackSource::open_here(env::Env& home, Opening opening) {
  Attempt<std::unique_ptr<drive::LiveStack>> drive = co_await plan_->open(home);
  if (!drive) {
    plan_->close();
    co_return std::unexpected(drive.error());
  }
  live_ = drive->get();
  drive_ = std::make_unique<drive::SharedDrive>(home, std::move(*drive), opening);
  co_return Attempt<void>();
}

task::Task<drive::LayerInfo> StackSource::layers(env::Env& env) {
  drive::LayerInfo info =
      co_await env::call_on(env, drive_->core(), [this](env::Env&) { return live_->layers(); });
  co_return info;
}

task::Task<std::vector<StackSource::Health>> StackSource::health_of(
    env::Env& env, std::vector<const StackSource*> stacks) {
  std::vector<Health> all(stacks.size());
  std::set<CoreId> cores;
  for (const StackSource* stack : stacks) cores.insert(stack->drive_->core());
  for (const CoreId core : cores) {
    co_await env::call_on(env, core, [&all, &stacks](env::Env& there) {
      for (size_t i = 0; i < stacks.size(); ++i) {
        if (stacks[i]->drive_->core() == there.core()) all[i] = stacks[i]->live_->health();
      }
    });
  }
  co_return all;
}

task::Task<drive::LiveStack::Told> StackSource::tell(env::Env& env, std::string layer,
                                                     std::vector<std::string> args) {
  drive::LiveStack::Told told = co_await env::call_on(
      env, drive_->core(), [this, &layer, &args](env::Env&) { return live_->tell(layer, args); });
  co_return told;
}

task::Task<Attempt<void>> StackSource::edit(env::Env& env, std::unique_ptr<StackPlan> to) {
  const Attempt<void> edited = co_await env::call_on(
      env, drive_->core(), [this, &to](env::Env&) { return plan_->edit(*live_, std::move(to)); });
  co_return edited;
}

task::Task<Attempt<Duration>> StackSource::move(env::Env& env, StackMover& mover) {
  const Attempt<Duration> moved = co_await env::call_on(
      env, drive_->core(),
      [this, &mover](env::Env& home) { return plan_->move(home, *live_, mover); });
  co_return moved;
}

StackSource::Borrowed StackSource::borrowed_here() const {
  const drive::Drive* const top = live_->layer();
  if (top == nullptr || top != plan_->borrowed_drive()) return {};
  return {.is_alone = live_->incarnation() == top->incarnation(), .has_lent = live_->has_lent()};
}

task::Task<StackSource::Borrowed> StackSource::borrowed(env::Env& env) {
  const Borrowed borrowed =
      co_await env::call_on(env, drive_->core(), [this](env::Env&) { return borrowed_here(); });
  co_return borrowed;
}

task::Task<void> StackSource::note_lent(env::Env& env) {
  co_await env::call_on(env, drive_->core(), [this](env::Env&) { live_->note_lent(); });
}

task::Task<void> StackSource::close(env::Env& env) {
  co_await drive_->close(env);
  co_await env::call_on(env, drive_->core(), [this](env::Env&) { plan_->close(); });
}

}  // namespace cairn::server
