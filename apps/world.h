// SPDX-License-Identifier: Apache-2.0
// Makes the world a command runs in.
#pragma once

#include <memory>

#include "apps/backend.h"
#include "apps/problem.h"
#include "apps/settings.h"
#include "env/world.h"

namespace cairn::apps {

// A world on the given back end, or for kAuto on the one that choose_backend takes here. A Problem
// only when uring is demanded and is not usable.
Attempt<std::unique_ptr<env::World>> make_world(IoChoice io, env::WorldOptions options);

}  // namespace cairn::apps
