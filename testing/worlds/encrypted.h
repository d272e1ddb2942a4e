// SPDX-License-Identifier: Apache-2.0
// The same streams through TLS: they keep the contract of those they stand on.
#pragma once

#include "env/env.h"
#include "task/task.h"
#include "testing/worlds/scene.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {

// Shakes hands over a plain pair and gives the encrypted one.
task::Task<Pair> encrypted(env::Env& env, Scene& scene, Pair plain);

}  // namespace cairn::conformance
