// SPDX-License-Identifier: Apache-2.0
#include "world/machine/world.h"

#include <utility>

#include "world/epoll/world.h"
#include "world/machine/facts.h"
#include "world/uring/world.h"

namespace cairn::machine {

Attempt<std::unique_ptr<env::World>> make_world(config::IoChoice io, env::WorldOptions options) {
  const Attempt<Backend> backend = choose_backend(io, gather_uring());
  if (!backend) return std::unexpected(backend.error());
  if (backend->io == config::IoChoice::kUring) {
    return std::make_unique<uring::UringWorld>(std::move(options));
  }
  return std::make_unique<epoll::EpollWorld>(std::move(options));
}

}  // namespace cairn::machine
