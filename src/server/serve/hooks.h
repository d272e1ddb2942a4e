// SPDX-License-Identifier: Apache-2.0
// What a server needs of its surroundings; each may be left out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/problem.h"
#include "config/settings.h"
#include "nvme/auth/auth_policy.h"
#include "nvme/auth/tls_policy.h"
#include "server/config/changes.h"
#include "server/control/health_json.h"
#include "server/events/event_log.h"

namespace cairn::server {

struct ServerHooks {
  std::function<void(config::LogLevel, std::string_view)> log;
  // Who is told of each change of health, and tells the log; null: the log alone is told. Outlives
  // the server.
  EventLog* events = nullptr;
  // Keeps all changes there are; durable when it returns.
  std::function<Attempt<void>(const ServerChanges&)> keep;
  // The key in a file.
  std::function<Attempt<nvme::AuthSecret>(const std::string& path)> read_key;
  std::function<Attempt<nvme::TlsKey>(const std::string& path)> read_tls_key;
  // A guest's door came at this socket, or the one there is gone.
  std::function<void(const std::string& socket, bool is_there)> door_changed;

  void say(config::LogLevel level, std::string_view line) const {
    if (log) log(level, line);
  }
  void tell(Event event) const {
    if (events == nullptr) return say(level_of(event.severity), event_line(event));
    events->tell(std::move(event));
  }
};

}  // namespace cairn::server
