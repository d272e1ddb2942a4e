// SPDX-License-Identifier: Apache-2.0
// Serving keys and values in any world, from the first key to the last reply.
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
#include "door/resp/options.h"
#include "env/address.h"
#include "env/env.h"
#include "server/events/events_door.h"
#include "server/kv/node.h"
#include "server/kv/open_keyspace.h"
#include "server/monitor/monitor.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

struct KvServeOptions {
  KeyspaceArgs keyspace;
  std::optional<KvNodeOptions> node;  // none: the keys are all here
  std::vector<env::Address> resp;
  std::vector<env::Address> http;  // where metrics and health can be looked at
  std::optional<crypto::Digest> http_token;
  door::resp::RespOptions door;
  Duration drain_timeout = 10_s;
  std::function<void(config::LogLevel, std::string_view)> log;
  EventsDoorOptions events;
  // Whoever looks at metrics and health can connect, at these addresses; before `ready`.
  std::function<void(const std::vector<env::Address>&)> http_ready;
  // Clients can connect, at these addresses.
  std::function<void(const std::vector<env::Address>&)> ready;
  // What it tells over HTTP, for the process that it is a part of; null: it ends.
  std::function<void(Monitor::Source*)> has_source;
  // Until when; left out: until the world is asked to end.
  task::CancelToken until;
};

// For as long as `until` says; then requests in flight are answered. The Problem: the keyspace
// or the metadata store does not open, or an address cannot be listened at.
task::Task<Attempt<void>> serve_keys(env::Env& env, KvServeOptions& options);

}  // namespace cairn::server
