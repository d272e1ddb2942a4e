// SPDX-License-Identifier: Apache-2.0
#include "apps/world.h"

#include <utility>

#include "apps/doctor/facts.h"
#include "epoll/world.h"
#include "uring/world.h"

namespace cairn::apps {

Attempt<std::unique_ptr<env::World>> make_world(IoChoice io, env::WorldOptions options) {
  const Attempt<Backend> backend = choose_backend(io, doctor::gather_uring());
  if (!backend) return std::unexpected(backend.error());
  if (backend->io == IoChoice::kUring) {
    return std::make_unique<uring::UringWorld>(std::move(options));
  }
  return std::make_unique<epoll::EpollWorld>(std::move(options));
}

}  // namespace cairn::apps
