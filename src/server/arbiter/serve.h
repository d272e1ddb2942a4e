// SPDX-License-Identifier: Apache-2.0
// Serving the arbiter of a pool in any world, from the first election to the last reply.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arbiter/market/market.h"
#include "base/error.h"
#include "base/problem.h"
#include "base/units.h"
#include "config/settings.h"
#include "crypto/hash.h"
#include "env/address.h"
#include "env/env.h"
#include "rpc/client_keys.h"
#include "server/events/events_door.h"
#include "server/monitor/monitor.h"
#include "server/open/store_uri.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

struct ArbiterServeOptions {
  StoreUri store;
  std::vector<env::Address> listen;  // at least one
  std::vector<env::Address> http;    // where metrics and health can be looked at
  std::optional<crypto::Digest> http_token;
  // Who may come to addresses that are not local sockets; none: everybody who reaches them.
  std::shared_ptr<const rpc::ClientKeys> clients;
  std::string name;  // of the process, for operators and in elections
  Duration election_ttl = 5_s;
  Duration lease = 120_s;  // how long clients go on without an arbiter
  arbiter::MarketOptions market;
  std::function<void(config::LogLevel, std::string_view)> log;
  EventsDoorOptions events;
  // Whoever looks at metrics and health can connect, at these addresses; before `ready`.
  std::function<void(const std::vector<env::Address>&)> http_ready;
  // It can be asked, at these addresses.
  std::function<void(const std::vector<env::Address>&)> ready;
  // It leads, or it does so no more.
  std::function<void(bool is_leading)> on_change;
  // What it tells over HTTP, for the process that it is a part of; null: it ends.
  std::function<void(Monitor::Source*)> has_source;
  // Until when; left out: until the world is asked to end.
  task::CancelToken until;
};

// For as long as `until` says. The Problem: the store does not open, or an address cannot be
// listened at.
task::Task<Attempt<void>> serve_arbiter(env::Env& env, ArbiterServeOptions& options);

}  // namespace cairn::server
