// SPDX-License-Identifier: Apache-2.0
// What a server needs of its surroundings; each may be left out.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "config/settings.h"
#include "nvme/auth/auth_policy.h"
#include "nvme/auth/tls_policy.h"
#include "server/config/changes.h"

namespace cairn::server {

struct ServerHooks {
  std::function<void(config::LogLevel, std::string_view)> log;
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
};

}  // namespace cairn::server
