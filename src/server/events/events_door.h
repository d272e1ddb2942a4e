// SPDX-License-Identifier: Apache-2.0
// EventsDoor: the events of a process that has no other commands: its own log or that of the
// process which it is a part of, and a control socket where it is asked for them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "env/env.h"
#include "server/control/control_server.h"
#include "server/events/process_events.h"
#include "task/task.h"

namespace cairn::server {

struct EventsDoorOptions {
  EventOptions own;            // of a log of its own
  EventLog* shared = nullptr;  // instead of one; outlives it
  // The path of the control socket. Left out: there is none.
  std::function<Attempt<std::string>()> control_path;
  // It can be asked there; before the process can be used.
  std::function<void(const std::string& path)> control_ready;
};

// On the control core. Closed after what tells.
class EventsDoor {
 public:
  EventsDoor(env::Env& env, const std::string& role, EventsDoorOptions options,
             const std::function<void(config::LogLevel, std::string_view)>& log);

  EventLog& log() { return options_.shared != nullptr ? *options_.shared : own_->log(); }
  // Without a place for a socket it does without one, and says so. The Problem says what to do;
  // close() follows in any case.
  task::Task<Attempt<void>> listen();
  // Of the whole process; a part says nothing.
  void tell_begun();
  void tell_ending();
  task::Task<void> close();

 private:
  task::Task<Attempt<Json>> answer(ControlRequest request);

  env::Env& env_;
  const EventsDoorOptions options_;
  const std::function<void(config::LogLevel, std::string_view)> log_;
  std::optional<ProcessEvents> own_;
  ControlServer control_;
};

}  // namespace cairn::server
