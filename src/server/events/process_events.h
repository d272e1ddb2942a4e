// SPDX-License-Identifier: Apache-2.0
// ProcessEvents: the events of a process that serves, with all that they go to; and what it answers
// when it is asked for them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "config/settings.h"
#include "env/env.h"
#include "server/control/control_format.h"
#include "server/events/event_hook.h"
#include "server/events/event_log.h"
#include "task/task.h"

namespace cairn::server {

struct EventOptions {
  std::string folder;   // where they are kept: a state folder; empty: in memory
  std::string command;  // run when something changed; empty: none
};

// On one core. Closed when everything else that tells is.
class ProcessEvents {
 public:
  // `role` is what the process does: "serve". Events that cannot be kept are in memory, and the log
  // says so.
  ProcessEvents(env::Env& env, std::string role, const EventOptions& options,
                std::function<void(config::LogLevel, std::string_view)> log);

  EventLog& log() { return log_; }
  // It can be used; or it ends, after which nobody waits for events any more.
  void tell_begun();
  void tell_ending();
  task::Task<void> close();

 private:
  std::unique_ptr<EventKeeper> keeper_;
  std::unique_ptr<CommandRunner> runner_;
  EventLog log_;
  std::optional<EventHook> hook_;
};

// At most so long, so that nobody who is gone keeps a place.
inline constexpr Duration kEventsWaitMax = 25_s;

// What the request `events` is answered: "schema_version", "role", "log" (its name), "events" (the
// oldest first), "last" (the newest id there is) and "more". `wait_ms` says how long to wait when
// there is none.
task::Task<Attempt<Json>> answer_events(env::Env& env, EventLog& log, ControlRequest request);
// The same at once.
Json events_json(const EventLog& log, const EventsWanted& wanted);

}  // namespace cairn::server
