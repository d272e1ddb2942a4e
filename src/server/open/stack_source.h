// SPDX-License-Identifier: Apache-2.0
// StackSource: a stack as a user named it, open on one core, served to all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "drive/shared_drive.h"
#include "drive/source.h"
#include "env/env.h"
#include "server/open/open_stack.h"
#include "stack/live_stack.h"
#include "task/task.h"

namespace cairn::server {

// Closed before it is destroyed.
class StackSource final : public drive::Source {
 public:
  // Opens the stack on core `home`; called on any. The Problem shows the layer at fault.
  using Opening = drive::SharedDrive::Opening;
  static task::Task<Attempt<std::unique_ptr<StackSource>>> open_on(env::Env& env, CoreId home,
                                                                   std::unique_ptr<StackPlan> plan,
                                                                   Opening opening = Opening::kNew);

  Result<std::unique_ptr<drive::Drive>> open(env::Env& env) override { return drive_->open(env); }
  task::Task<void> close(env::Env& env) override;
  task::Task<drive::Extent> extent_at(env::Env& env, const drive::Drive& opened, Lba lba,
                                      uint64_t max) override {
    return drive_->extent_at(env, opened, lba, max);
  }

  // As those of drive::LiveStack, from any core. The Problem of an edit shows the layer at fault.
  task::Task<drive::LayerInfo> layers(env::Env& env);
  // Of several, in their order, with one message to each core.
  using Health = std::optional<drive::StackHealth>;
  static task::Task<std::vector<Health>> health_of(env::Env& env,
                                                   std::vector<const StackSource*> stacks);
  task::Task<drive::LiveStack::Told> tell(env::Env& env, std::string layer,
                                          std::vector<std::string> args);
  task::Task<Attempt<void>> edit(env::Env& env, std::unique_ptr<StackPlan> to);

  // As those of its plan.
  task::Task<Attempt<Duration>> move(env::Env& env, StackMover& mover);

  // Of the source that the plan borrowed.
  struct Borrowed {
    bool is_alone = false;  // it is all of the stack, and tells the same incarnation
    bool has_lent = false;  // memory that may be looked at; where it is alone
  };
  task::Task<Borrowed> borrowed(env::Env& env);
  // Its one layer has lent memory before it was this stack's.
  task::Task<void> note_lent(env::Env& env);

  const StackPlan& plan() const { return *plan_; }
  // What is shared, and on which core it lives.
  drive::SharedDrive& shared() { return *drive_; }

 private:
  explicit StackSource(std::unique_ptr<StackPlan> plan) : plan_(std::move(plan)) {}
  task::Task<Attempt<void>> open_here(env::Env& home, Opening opening);
  Borrowed borrowed_here() const;

  std::unique_ptr<StackPlan> plan_;
  drive::LiveStack* live_ = nullptr;  // what drive_ shares
  std::unique_ptr<drive::SharedDrive> drive_;
};

}  // namespace cairn::server
