// SPDX-License-Identifier: Apache-2.0
// LiveStack: an open stack that can be looked at, told things, and changed while it is used.
//
//   auto stack = co_await open_live_stack(env, "limit(file:/a, iops=500)", leaves);
//   auto edited = co_await (*stack)->edit("priority(limit(file:/a, iops=900))");
//
// A layer is named by its path, "0" for the one on top, "0.1" for the second below that, "0.1.0"
// for the first below that one; or by its service's name where no other layer has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drive/drive.h"
#include "drive/health.h"
#include "env/env.h"
#include "service/common/figures.h"
#include "service/common/joint.h"
#include "stack/services.h"
#include "stack/stack.h"
#include "stack/stack_text.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

// A layer as people see it, and those below it.
struct LayerInfo {
  std::string path;
  std::string name;  // of the service; of a leaf, the whole of it
  bool is_leaf = false;
  std::vector<Stack::Option> options;  // as they were given
  std::string problem;                 // why it is not there; empty: it is
  Geometry geometry;
  LayerFigures figures;
  std::vector<std::pair<std::string, uint64_t>> facts;
  std::vector<LayerInfo> below;
};

// A layer, open, with those below it.
struct StackNode {
  std::unique_ptr<LateDrives> late;  // for a service that has some to wait for
  Stack text;                        // its own and of all below
  OpenLayer open;
  std::string problem;   // why the drive is null
  bool is_lost = false;  // it was open, and did not open again: those below wait for an edit
  bool is_kept = false;  // by an edit, for its new stack
  std::vector<std::unique_ptr<StackNode>> below;
};
using StackNodes = std::vector<std::unique_ptr<StackNode>>;

// Where the layers of a stack go that leave this process, or where they come from.
class Handover {
 public:
  // Nothing of the stack is open here. Has its layers opened elsewhere, or those there closed;
  // gives what stands for them here from now on, of the same blocks.
  virtual task::Task<std::expected<Stack, StackError>> give() = 0;
  // It failed, or what it gave cannot be opened here: undoes it, so that the old stack can be
  // opened. False: the layers may still be open elsewhere, and nothing is opened here.
  virtual task::Task<bool> take_back() = 0;

 protected:
  ~Handover() = default;
};

// It is the joint on top of its layers, and owns them all. On one core, as any drive.
class LiveStack final : public Joint {
 public:
  // `turn` has one unit, and was given to those who opened the root.
  LiveStack(env::Env& env, Leaves& leaves, std::unique_ptr<task::Semaphore> turn,
            std::unique_ptr<StackNode> root);

  const Stack& stack() const { return root_->text; }

  // Edits and moves leave it as it is: they carry over all that was written.
  Incarnation incarnation() const override;

  // Waits while layers are being exchanged, no longer.
  task::Task<LayerInfo> layers();

  // What is wrong with it and what it does by itself; cheap, for whoever asks often. None: layers
  // are just being exchanged.
  std::optional<StackHealth> health() const;

  // A command for one layer. One that changes what the layer holds (content_changer.h) is refused
  // below any layer but filters: the error names those above and says what to do.
  using Told = std::expected<std::string, std::string>;
  task::Task<Told> tell(std::string layer, std::vector<std::string> args);
  // For the layer on top, or the first below it that is not merely a filter.
  Result<std::unique_ptr<Drive>> open_view(std::string_view name) override;
  using Joint::tell;

  // Makes it another stack, while it is used. What comes meanwhile waits; nobody above sees an
  // error. Layers that are in both stacks stay open, with all below them, wherever they stand; the
  // others are closed in good order or opened. Where a change is only of filters, what is above
  // them stays as well.
  //
  // Refused, with the old stack going on and nothing written: whatever open_stack refuses; another
  // size, larger blocks, smaller units of transfer or atomicity, or less durability than before;
  // other data: some blocks, among them the first ones, are read before and after; layers with open
  // views. The error is about a byte of the new text. Should the old stack not open again after a
  // change that failed, requests end with kClosed until an edit succeeds.
  using Edited = std::expected<void, StackError>;
  task::Task<Edited> edit(Stack stack, task::CancelToken token = {});
  task::Task<Edited> edit(std::string text, task::CancelToken token = {});

  // The same when all layers leave, or come: those that are here are closed, leaves too, before
  // `handover` is asked for the others. Of the new stack's geometry size, blocks, transfers and
  // atomicity count; durability and copies are those of the same layers, wherever they are. Gives
  // how long requests had to wait. On failure the old stack goes on, as after an edit; unless the
  // layers could not be taken back: then requests end with kClosed until an edit succeeds.
  using Moved = std::expected<Duration, StackError>;
  task::Task<Moved> move(Handover& handover, task::CancelToken token = {});

  task::Task<void> close() override;

 private:
  friend class StackEdit;
  StackNode* find(std::string_view layer, std::string& problem);
  // Layers were exchanged: whatever the new ones tell is what the old ones told.
  void carry_over() { known_ = Joint::incarnation(); }

  env::Env& env_;
  Leaves& leaves_;
  // Edits, commands, and drives that come late, one after the other.
  std::unique_ptr<task::Semaphore> turn_;
  std::unique_ptr<StackNode> root_;
  StackNodes retired_;         // leaves whose memory was lent
  task::Semaphore layers_{1};  // whoever has it may rely on root_, or change it
  mutable Incarnation known_;  // of the layers, as they were last asked
  mutable Incarnation told_;   // for it
};

using LiveOpened = std::expected<std::unique_ptr<LiveStack>, StackError>;
task::Task<LiveOpened> open_live_stack(env::Env& env, Stack stack, Leaves& leaves);

}  // namespace cairn::drive
