// SPDX-License-Identifier: Apache-2.0
// A server in any world, from its first drive to its last answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "crypto/hash.h"
#include "env/address.h"
#include "env/env.h"
#include "server/events/process_events.h"
#include "server/serve/rack_member.h"
#include "server/serve/server.h"
#include "task/task.h"

namespace cairn::server {

struct ServeOptions {
  ServerOptions server;
  DoorOptions doors;
  ServerChanges changes;
  ServerHooks hooks;  // without events: these are made from what follows
  EventOptions events;
  RackOptions rack;  // without shelves: it is in none
  RackHooks rack_hooks;
  std::vector<env::Address> http;  // where metrics and health can be looked at
  std::optional<crypto::Digest> http_token;
  // The path of the control socket. Left out: there is none.
  std::function<Attempt<std::string>()> control_path;
  // Whoever looks at metrics and health can connect, at these addresses; before `ready`.
  std::function<void(const std::vector<env::Address>&)> http_ready;
  // Clients can connect and, unless `control` is empty, the server can be asked there.
  std::function<void(const Server& server, const std::string& control)> ready;
};

// Serves until the world is asked to stop, then drains. The Problem says what could not be opened
// or bound, and what to do. `options` outlives the task.
task::Task<Attempt<void>> serve(env::Env& env, const ServeOptions& options);

}  // namespace cairn::server
