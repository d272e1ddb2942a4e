// SPDX-License-Identifier: Apache-2.0
// ControlServer: a box's control socket. Answers requests one by one on each connection.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "apps/box/box.h"
#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::apps {

struct ControlLimits {
  size_t connections_max = 32;
  Duration idle_timeout = 60_s;  // for the next request, and for the peer to take the reply
};

// On the box's core. Close it before the box.
class ControlServer {
 public:
  ControlServer(env::Env& env, Box& box, const ControlLimits& limits = {})
      : env_(env), box_(box), limits_(limits) {}
  // Errors as Env::listen: kExists when a living process has the socket.
  Result<void> listen(const env::Address& at);
  // Stops accepting, lets requests that are being executed end, and drops the rest.
  task::Task<void> close();

 private:
  task::Task<void> accept_loop();
  task::Task<void> serve(std::unique_ptr<env::Stream> stream);
  task::Task<Result<void>> answer(env::Stream& stream, std::string_view line);

  env::Env& env_;
  Box& box_;
  ControlLimits limits_;
  std::unique_ptr<env::Listener> listener_;
  task::CancelSource stop_;
  task::Gate gate_;
  size_t connections_ = 0;
};

}  // namespace cairn::apps
