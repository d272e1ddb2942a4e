// SPDX-License-Identifier: Apache-2.0
// UringWorld: the real world on io_uring, a ring per core.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "env/world.h"
#include "world/posix/world.h"

namespace cairn::uring {

// Which of the kernel's newer features to use where it has them.
struct Use {
  bool multishot = true;  // standing accept and receive, with buffer rings
};

class UringWorld final : public posix::ThreadWorld {
 public:
  explicit UringWorld(env::WorldOptions options, Use use = {})
      : ThreadWorld(std::move(options)), use_(use) {}

 private:
  Result<std::unique_ptr<posix::CoreEnv>> make_core(CoreId id, posix::Neighbours& neighbours,
                                                    const env::WorldOptions& options) override;
  Use use_;
};

// What this kernel's io_uring offers, found by trying.
struct Support {
  bool available = false;
  int error = 0;               // the errno of io_uring_setup when not available
  bool single_issuer = false;  // with deferred task running
  bool multishot_accept = false;
  bool multishot_receive = false;
  bool buffer_rings = false;
  bool zero_copy_send = false;
};
Support probe();

}  // namespace cairn::uring
