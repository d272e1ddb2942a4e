// SPDX-License-Identifier: Apache-2.0
// All of Cairn in one process: drives in a folder, served over NVMe/TCP as a box does; the arbiter
// of a pool of them; a volume with three replicas at every door; and a key-value store on another.
//
//   box (Server)  <--nvme-tcp--  arbiter (serve_arbiter)  <--rpc--  volumes (Server), keys
//   (serve_keys)
//
// Each part is what `cairn serve`, `cairn arbiter` and `cairn kv serve` run, and finds the others
// where those would: nothing is different but that they share a process, begin one after the other
// and end in the opposite order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "crypto/hash.h"
#include "env/address.h"
#include "env/env.h"
#include "server/config/changes.h"
#include "server/events/process_events.h"
#include "server/serve/hooks.h"
#include "server/up/up_addresses.h"
#include "server/up/up_folder.h"
#include "task/task.h"

namespace cairn::server {

struct UpOptions {
  UpFolder* folder = nullptr;  // outlives it
  std::vector<UpDoor> nbd;
  std::vector<UpDoor> nvme;
  std::vector<UpDoor> resp;
  std::vector<UpDoor> http;  // where metrics, health and events can be looked at
  std::optional<crypto::Digest> http_token;
  std::string version;  // that clients of Redis are told
  int pid = 0;
  EventOptions events;
  // Of what is served, and where changes of it are kept.
  ServerChanges changes;
  ServerHooks hooks;
  // The usual arbiter's socket of this user; empty: another process has it.
  std::string usual_arbiter;
  // Where this user's servers are asked; empty: nowhere but in the folder.
  std::string usual_control;
  // What clients can be told: where it is reached.
  std::function<void(const Json& told)> ready;
  // Local sockets that are there from now on.
  std::function<void(const std::string& path)> has_socket;
};

// Until the world is asked to end, or somebody asks for it at the control socket. The Problem says
// what could not be opened, and what to do. `options` outlives the task.
task::Task<Attempt<void>> serve_up(env::Env& env, UpOptions& options);

}  // namespace cairn::server
