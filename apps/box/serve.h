// SPDX-License-Identifier: Apache-2.0
// What a flash box serves, and serving it in any world.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/problem.h"
#include "drive/source.h"
#include "env/address.h"
#include "env/env.h"
#include "nvme/registry.h"
#include "task/task.h"

namespace cairn::apps {

struct BoxNamespace {
  drive::Spec drive;
  uint32_t nsid = 0;  // 0: the lowest free
};

struct BoxOptions {
  std::vector<env::Address> listen;
  std::vector<env::Address> advertise;  // none, or one for each of `listen`
  nvme::SubsystemOptions subsystem;
  std::vector<BoxNamespace> namespaces;
};

// Serves until the world is asked to stop, then drains. `ready` is told where it listens once hosts
// can connect. The Problem says what could not be opened or bound, and what to do.
task::Task<Attempt<void>> serve_box(env::Env& env, const BoxOptions& options,
                                    std::function<void(const std::vector<env::Address>&)> ready);

}  // namespace cairn::apps
