// SPDX-License-Identifier: Apache-2.0
// EpollWorld: the real world without io_uring, for containers and kernels that lack it.
#pragma once

#include <memory>
#include <utility>

#include "env/world.h"
#include "world/posix/world.h"

namespace cairn::epoll {

class EpollWorld final : public posix::ThreadWorld {
 public:
  explicit EpollWorld(env::WorldOptions options) : ThreadWorld(std::move(options)) {}

 private:
  Result<std::unique_ptr<posix::CoreEnv>> make_core(CoreId id, posix::Neighbours& neighbours,
                                                    const env::WorldOptions& options) override;
};

}  // namespace cairn::epoll
