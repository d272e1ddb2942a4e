// SPDX-License-Identifier: Apache-2.0
// A machine of a scene, and a box there with one drive.
#pragma once

#include <string>

#include "base/error.h"
#include "drive/source.h"
#include "env/env.h"
#include "task/task.h"
#include "world/sim/cluster.h"

namespace cairn::bench::leapio {

// As much memory as a real core has: a lookup of 7 MiB goes through whole.
sim::NodeOptions machine();

struct OneBox {
  env::Address at;
  std::string nqn;
};

// Serves `source` as namespace 1 until the node is asked to stop.
task::Task<void> serve_one(env::Env& env, OneBox box, drive::Source& source, Result<void>& outcome);

}  // namespace cairn::bench::leapio
