// SPDX-License-Identifier: Apache-2.0
// The vfio-user door of a server: where virtual machines find controllers, and what
// drives those have.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "config/settings.h"
#include "door/vfio_user/server.h"
#include "env/address.h"
#include "env/env.h"
#include "nvme/controller/registry.h"
#include "task/task.h"

namespace cairn::server {

// [NAME=]SOCKET[,mode=MODE].
struct VfioArgs {
  std::string drive;   // empty: all of them, as namespaces of one controller
  std::string socket;  // a path; a % in it stands for the drive's name, a controller for each
  door::vfio_user::Pace pace = door::vfio_user::Pace::kAdaptive;
};
Attempt<VfioArgs> parse_vfio_args(std::string_view text);

// One controller: its socket, and the subsystem that has its drives.
struct VfioController {
  std::string socket;
  std::vector<std::string> drives;
  std::string nqn;
  door::vfio_user::Pace pace = door::vfio_user::Pace::kAdaptive;

  bool has(std::string_view drive) const {
    return std::ranges::find(drives, drive) != drives.end();
  }
};

// The controllers of all doors. A controller with all drives has the subsystem `nqn`; one with a
// drive of its own has one made of that and the drive's name. The Problem: there is no such drive,
// or a socket comes twice.
Attempt<std::vector<VfioController>> plan_controllers(const std::vector<VfioArgs>& doors,
                                                      const std::vector<std::string>& drives,
                                                      const std::string& nqn);

// On the control core. The registry outlives it and has the subsystems already.
class VfioDoor {
 public:
  VfioDoor(env::Env& env, nvme::Registry& registry,
           std::function<void(config::LogLevel, std::string_view)> log);

  task::Task<Attempt<void>> open(const std::vector<VfioController>& controllers);
  // Finishes what controllers do, until then; and ends.
  task::Task<void> close(Time until);

  door::vfio_user::VfioUserServer& server() { return server_; }

 private:
  env::Env& env_;
  nvme::Registry& registry_;
  door::vfio_user::VfioUserServer server_;
};

}  // namespace cairn::server
