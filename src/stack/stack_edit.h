// SPDX-License-Identifier: Apache-2.0
// StackEdit: one change of a live stack, from the difference to the exchange of layers; or one
// handover of all of them. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stack/live_stack.h"
#include "stack/stack_nodes.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::drive {

class StackEdit {
 public:
  StackEdit(LiveStack& live, Stack wanted) : live_(live), wanted_(std::move(wanted)) {}
  StackEdit(LiveStack& live, Handover& handover) : live_(live), handover_(&handover) {}

  // Once, by whoever has the stack's turn.
  task::Task<LiveStack::Edited> run(task::CancelToken token);
  // How long what came has waited, after run().
  Duration waited() const { return waited_; }

 private:
  struct Sample {
    uint64_t block = 0;
    std::vector<std::byte> bytes;
  };
  // A place where one subtree is exchanged for another, below a joint that stays. No layer moves
  // from one such place to another: where there are several, each differs by filters alone.
  struct Change {
    StackOpener opener;
    std::unique_ptr<StackNode>* slot;
    Joint* joint;
    const Stack* wanted;
    Stack before;
    Geometry shape;
    std::vector<Sample> samples;
    std::unique_ptr<StackNode> opened;
  };

  Change change_at(std::unique_ptr<StackNode>& slot, Joint& joint, const Stack& wanted);
  void find_changes(std::unique_ptr<StackNode>& slot, Joint& joint, const Stack& wanted);
  task::Task<LiveStack::Edited> open_new_leaves();
  // Closes the leaves too, and learns what is wanted.
  task::Task<LiveStack::Edited> hand_over();
  // False: layers may still be open elsewhere.
  task::Task<bool> take_back();
  task::Task<LiveStack::Edited> hold_all(task::CancelToken token);
  task::Task<LiveStack::Edited> exchange();
  task::Task<LiveStack::Edited> look_at(Change& change);
  LiveStack::Edited keep_what_stays();
  task::Task<void> take_old_apart();
  // As open_new, on trial: nothing is written to any drive, and nothing stays open.
  task::Task<LiveStack::Edited> try_new(Change& change);
  task::Task<LiveStack::Edited> open_new();
  task::Task<LiveStack::Edited> check_new(const Change& change, StackNode& opened);
  task::Task<void> take_new_apart();
  task::Task<void> open_old_again();
  static void give_up(Change& change, std::string problem);

  LiveStack& live_;
  Handover* handover_ = nullptr;  // null: an edit
  bool was_asked_ = false;        // `handover_`
  Stack wanted_;                  // of a handover: nothing until it has given
  Duration waited_;
  std::vector<Change> changes_;
};

}  // namespace cairn::drive
