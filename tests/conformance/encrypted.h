// SPDX-License-Identifier: Apache-2.0
// The same streams through TLS: they keep the contract of those they stand on.
#pragma once

#include "conformance/scene.h"
#include "conformance/verbs.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::conformance {

// Shakes hands over a plain pair and gives the encrypted one.
task::Task<Pair> encrypted(env::Env& env, Scene& scene, Pair plain);

}  // namespace cairn::conformance
