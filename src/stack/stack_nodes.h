// SPDX-License-Identifier: Apache-2.0
// Opening the layers of a stack and taking them apart again, a layer at a time. Internal.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/env.h"
#include "stack/live_stack.h"
#include "stack/stack.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::drive {

bool is_filter(const Stack& stack);
// The first layer that is no filter, whose blocks are the same; a filter on trial has none below.
StackNode& without_filters(StackNode& node);

// Opens layers; those it has already, by their text, are taken as they are.
class StackOpener {
 public:
  // `turn` is taken by whoever changes the stack later, so also to open drives that were not there
  // at first; null: those never come. Outlives what is opened.
  StackOpener(env::Env& env, Leaves& leaves, task::Semaphore* turn)
      : env_(env), leaves_(leaves), turn_(turn), may_format_(leaves.may_format()) {}
  // From here on no drive is taken that holds something else.
  void keep_all() { may_format_ = false; }

  using Node = std::expected<std::unique_ptr<StackNode>, StackError>;
  // Whatever was opened and is of no use is in `have`, services that had come taken apart: all of
  // it on failure, else what stood below a layer that did not open and can be done without.
  task::Task<Node> open(const Stack& stack);
  // Opens the leaves of a stack, side by side, but for so many of each text as are open elsewhere;
  // they are in `have` then. Of those under a service that survives their loss the failure is
  // remembered, and not tried again.
  task::Task<std::expected<void, StackError>> open_leaves(const Stack& stack,
                                                          std::map<std::string, size_t>& elsewhere);

  // Closes the service and those below it, down to what is kept: that goes to `have`, leaves too.
  task::Task<void> take_apart(std::unique_ptr<StackNode> node);
  // Closes all of `have` with everything below; leaves whose memory was lent go to `retired`, if it
  // is not null.
  task::Task<void> close_rest(StackNodes* retired);

  StackNodes have;

  // One that has the same layers, for trial: what is written to them is forgotten. Closed before
  // this one changes.
  StackOpener on_trial() const;

 private:
  std::unique_ptr<StackNode> take(const Stack& stack);
  task::Task<Node> open_leaf(const Stack& stack);
  task::Task<Node> open_service(const Stack& stack);
  task::Task<std::string> why_not(const StackNode& node, Error error);
  void list_missing(const Stack& stack, bool may_fail, std::map<std::string, size_t>& counted,
                    std::vector<std::pair<const Stack*, bool>>& missing) const;

  env::Env& env_;
  Leaves& leaves_;
  task::Semaphore* turn_;
  bool may_format_;
  std::map<std::string, std::string> failed_;  // leaves, and why
};

}  // namespace cairn::drive
