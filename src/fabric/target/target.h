// SPDX-License-Identifier: Apache-2.0
// Target: NVMe/TCP listeners and the connections they brought, over all cores of a world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "env/env.h"
#include "fabric/target/connection.h"
#include "fabric/target/options.h"
#include "fabric/target/report.h"
#include "nvme/controller/registry.h"
#include "stream/reception.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::fabric {

// How hosts speak to a listener.
enum class Channel : uint8_t {
  kPlain,
  kTls,  // TLS 1.3 with a key that the registry has for them; required
};

// Made and used on the control core, where its registry lives. A connection is accepted here and
// opened on one of the cores, in turn. Strangers have few places (ConnectionSlots).
// Close it before the registry.
class Target {
 public:
  Target(env::Env& env, nvme::Registry& registry, const TargetOptions& options = {});
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // Begins to accept. Gives the address with the port that was chosen. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at, Channel channel = Channel::kPlain);
  // Stops accepting and takes no more commands; when those in flight were answered, ends the
  // connections in good order. Done when they are gone or `until` has passed; close() follows.
  task::Task<void> drain(Time until);
  // Stops accepting, ends every connection and waits for it.
  task::Task<void> close();

  uint64_t connections() const { return reception_.connections(); }
  // What they have done so far, with at most so many of them one by one.
  task::Task<TargetReport> report(size_t lanes_max);

 private:
  class PerCore;
  // How a connection came.
  struct Arrival {
    uint32_t listener;  // its number
    Channel channel;
  };
  task::Task<void> accept_loop(env::Listener& listener, Arrival arrival);
  task::Task<void> serve(env::Connection connection, Arrival arrival);
  task::Task<void> stop_accepting();
  // function(PerCore&) gives a task; runs on every core that has connections.
  template <class F>
  task::Task<void> on_cores(F function);

  env::Env& env_;
  nvme::Registry& registry_;
  TargetOptions options_;
  std::vector<std::unique_ptr<PerCore>> cores_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  std::vector<env::Address> addresses_;  // of all listeners, by number
  task::CancelSource stop_;
  task::Gate accepting_;
  task::Gate gate_;  // of connections
  uint32_t next_core_ = 0;
  stream::Reception reception_;
};

}  // namespace cairn::fabric
