// SPDX-License-Identifier: Apache-2.0
// NvmeDoor: the subsystems of a server, and where hosts reach them over NVMe/TCP.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "env/env.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "rack/types.h"
#include "server/common/options.h"
#include "server/common/stranger_log.h"
#include "server/serve/hooks.h"
#include "task/task.h"

namespace cairn::server {

// On the control core. Its namespaces come and go through the registry, also for those who reach it
// without a listener (virtual machines).
class NvmeDoor {
 public:
  // What it is given outlives it.
  NvmeDoor(env::Env& env, const ServerOptions& options, const ServerHooks& hooks,
           StrangerLog& strangers);

  // A subsystem without namespaces, whose list of hosts is that of `options`; with the keys of its
  // hosts.
  Attempt<void> add_subsystem(const SubsystemConfig& subsystem,
                              const nvme::SubsystemOptions& options);
  // Every listener there is to be. The Problem says what could not be bound, and what to do.
  task::Task<Attempt<void>> listen();
  // Stops accepting, lets commands in flight end, flushes, then closes all subsystems.
  task::Task<void> close();

  nvme::Registry& registry() { return registry_; }
  const nvme::Registry& registry() const { return registry_; }
  fabric::Target& target() { return target_; }
  const std::vector<env::Address>& listening() const { return listening_; }
  // The subsystem of this name, or the only one.
  Attempt<std::string> find(std::string_view nqn) const;
  // Where hosts reach the subsystem, as others can be told; none: only this machine would know.
  std::optional<rack::Endpoint> endpoint_of(const std::string& nqn) const;

 private:
  Attempt<void> demand_authentication(const SubsystemConfig& subsystem);
  Attempt<void> take_tls_keys(const SubsystemConfig& subsystem);
  Attempt<void> check_listener(const ListenerOptions& listener) const;
  Result<env::Address> listen_at(const env::Address& at, const ListenerOptions& listener);
  std::vector<std::string> names() const;
  void log_failure(const nvme::DriveFailure& failure);
  fabric::TargetOptions with_log(fabric::TargetOptions options);

  env::Env& env_;
  const ServerOptions& options_;
  const ServerHooks& hooks_;
  StrangerLog& strangers_;
  nvme::Registry registry_;
  fabric::Target target_;
  std::vector<env::Address> listening_;
  std::map<std::pair<std::string, uint32_t>, Time> quiet_until_;  // of failures, by nsid
};

}  // namespace cairn::server
