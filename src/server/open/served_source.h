// SPDX-License-Identifier: Apache-2.0
// ServedSource: what doors open of a served drive. It stands for a drive that could not be opened
// yet, so that this keeps its name and its number at every door until it can be; and what it leads
// to can become something else while doors have it open.
//
// A single drive is opened by every core for itself. What a door has of it is a joint that counts
// nothing, so that the drive can become the one layer of a stack, and be edited then.
#pragma once

#include <memory>
#include <vector>

#include "base/problem.h"
#include "drive/source.h"
#include "env/env.h"
#include "server/open/open_stack.h"
#include "server/open/stack_source.h"
#include "task/task.h"

namespace cairn::server {

// Made and filled on one core, used on all; closed before it is destroyed, filled or not.
class ServedSource final : public drive::Source, private SourceLender {
 public:
  explicit ServedSource(uint32_t cores) : cores_(cores) {}

  // It is open now: every core finds it from here on. Once.
  task::Task<void> fill(env::Env& env, std::unique_ptr<drive::Source> source);
  // Null: a single drive, or nothing yet.
  StackSource* stack() const { return stack_.get(); }

  // Changes of what is open, one at a time, on the core that filled it. What comes meanwhile waits,
  // and is answered by what is there then; nobody who has it open sees an error, another size or
  // another incarnation. What completed before is flushed. On failure nothing has changed.
  //
  // A single drive becomes a stack on core `home`, of which it is the one layer. `plan` is that of
  // its own text.
  task::Task<Attempt<void>> become_stack(env::Env& env, CoreId home,
                                         std::unique_ptr<StackPlan> plan);
  // Whether the drive that became a stack is still one of its layers.
  bool is_single_below() const { return source_ != nullptr && stack_ != nullptr; }
  // The other way round, where that layer is all there is: then the stack is gone, so nobody looks
  // at it meanwhile. Otherwise nothing changes.
  task::Task<void> become_single(env::Env& env);

  // kUnreachable while it is not filled.
  Result<std::unique_ptr<drive::Drive>> open(env::Env& env) override;
  task::Task<void> close(env::Env& env) override;
  task::Task<drive::Extent> extent_at(env::Env& env, const drive::Drive& opened, Lba lba,
                                      uint64_t max) override;
  // Of a stack nothing is known.
  std::vector<env::Disk::Extent> data() const override;
  const drive::ModelledMedium* modelled() const override;

 private:
  class Handle;
  // What a core knows of it; no other core looks at that.
  struct Core {
    drive::Source* source = nullptr;
    bool has_handles = false;      // of a drive that is a single one, or was
    bool is_held = false;          // by exchange()
    std::vector<Handle*> handles;  // that are open
  };
  struct Returned : env::Message {
    using Message::Message;
    ServedSource* to = nullptr;
  };

  Core& on(env::Env& there) { return cores_[there.core().value()]; }
  // Has all that is open lead to `to` instead. Whether memory was lent by what it led to.
  task::Task<Result<bool>> exchange(env::Env& env, drive::Source& to);
  task::Task<Result<void>> hold(env::Env& there);
  task::Task<Result<bool>> lead_to(env::Env& there, drive::Source& to);
  void release(env::Env& there);
  // And the single drive below it stays.
  task::Task<void> close_stack(env::Env& env, StackSource& stack);
  void returned(env::Env& there) override;
  static void returned_home(env::Message& message, env::Env& home);

  std::vector<Core> cores_;
  CoreId home_{};                          // that filled it
  std::unique_ptr<drive::Source> source_;  // of a single drive; a stack's layer may borrow it
  std::unique_ptr<StackSource> stack_;
  bool keeps_source_ = false;  // though the stack gives it back
  bool has_lent_ = false;      // its memory may be looked at until it is closed
  Returned returned_{&ServedSource::returned_home};
};

}  // namespace cairn::server
