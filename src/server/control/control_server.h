// SPDX-License-Identifier: Apache-2.0
// ControlServer: the control socket of a server. Answers requests one by one on each connection.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/problem.h"
#include "base/units.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::server {

struct ControlLimits {
  size_t connections_max = 32;
  Duration idle_timeout = 60_s;  // for the next request, and for the peer to take the reply
};

// On the control core. Close it before what it speaks for.
class ControlServer {
 public:
  // Does what is asked: the result as an object, or what the person who asked should know.
  using Execute = std::function<task::Task<Attempt<Json>>(ControlRequest)>;
  ControlServer(env::Env& env, Execute execute, const ControlLimits& limits = {})
      : env_(env), execute_(std::move(execute)), limits_(limits) {}
  // Errors as Env::listen: kExists when a living process has the socket.
  Result<void> listen(const env::Address& at);
  // Stops accepting, lets requests that are being executed end, and drops the rest.
  task::Task<void> close();

 private:
  task::Task<void> accept_loop();
  task::Task<void> serve(std::unique_ptr<env::Stream> stream);
  task::Task<Result<void>> answer(env::Stream& stream, std::string_view line);

  env::Env& env_;
  const Execute execute_;
  ControlLimits limits_;
  std::unique_ptr<env::Listener> listener_;
  task::CancelSource stop_;
  task::Gate gate_;
  size_t connections_ = 0;
};

// Has it listen at the socket `path`; what a process held that was killed a moment ago is waited
// for. The Problem says what to do.
task::Task<Attempt<void>> listen_at(env::Env& env, ControlServer& control, std::string path);

}  // namespace cairn::server
