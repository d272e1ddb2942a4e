// SPDX-License-Identifier: Apache-2.0
// Makes the world a command runs in.
#pragma once

#include <memory>

#include "base/problem.h"
#include "config/settings.h"
#include "env/world.h"
#include "world/machine/backend.h"

namespace cairn::machine {

// A world on the given back end, or for kAuto on the one that choose_backend takes here. A Problem
// only when uring is demanded and is not usable.
Attempt<std::unique_ptr<env::World>> make_world(config::IoChoice io, env::WorldOptions options);

}  // namespace cairn::machine
