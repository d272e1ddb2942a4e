// SPDX-License-Identifier: Apache-2.0
// A served drive whose layers run in a box, on this processor or another, while its doors stay
// here; and their way there and back.
//
// The layers are in one place at any time: they are closed where they were before they are opened
// where they go. That the box has closed them is proven by its own word, that it has no such
// namespace, and by nothing else: a socket that nobody answers at proves nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "fabric/host/uri.h"
#include "server/open/open_stack.h"
#include "task/task.h"

namespace cairn::server {

// Where a drive's layers are.
struct BoxPlace {
  std::string control;  // the box's socket
  fabric::Uri uri;      // how its subsystem is reached from here; nsid and UUID once they are there
  std::string uuid;     // of their namespace
  std::string layers;   // the stack there, as it was here
  uint32_t transfer_blocks = 0;  // its largest request, as clients know it
  // The box was asked to open them, and has not said since that it has none.
  bool may_be_open = false;
};

// Learns from the box at `control` how its subsystem is reached, unless `via`, a URI, says so. The
// namespace gets a new UUID.
task::Task<Attempt<BoxPlace>> find_place_in_box(env::Env& env, std::string control, std::string via,
                                                std::string layers);

// Has the box open the layers as another namespace. `place` outlives it, and has the nsid then.
// When they cannot be had back, `place` may be open, and they are not opened here.
class MoveToBox final : public StackMover {
 public:
  explicit MoveToBox(BoxPlace& place) : place_(place) {}
  task::Task<Attempt<std::unique_ptr<StackPlan>>> give(env::Env& env) override;
  task::Task<bool> take_back(env::Env& env) override;

 private:
  BoxPlace& place_;
};

// Has the box close them. When it does not say so, they stay there.
class MoveFromBox final : public StackMover {
 public:
  explicit MoveFromBox(BoxPlace& place) : place_(place) {}
  task::Task<Attempt<std::unique_ptr<StackPlan>>> give(env::Env& env) override;
  task::Task<bool> take_back(env::Env& env) override;

 private:
  BoxPlace& place_;
};

}  // namespace cairn::server
