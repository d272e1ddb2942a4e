// SPDX-License-Identifier: Apache-2.0
#include "server/kv/serve.h"

#include <memory>
#include <utility>

#include "door/resp/info.h"
#include "door/resp/server.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/common/stranger_log.h"
#include "server/kv/health.h"
#include "server/monitor/monitor.h"
#include "server/monitor/process_metrics.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::server {

namespace {

task::CancelToken end_of(env::Env& env, const KvServeOptions& options) {
  return options.until.can_cancel() ? options.until : env.stop_token();
}

task::Task<Attempt<std::vector<env::Address>>> listen_at_all(
    env::Env& env, door::resp::RespServer& server, const std::vector<env::Address>& addresses) {
  std::vector<env::Address> listening;
  for (const env::Address& at : addresses) {
    Result<env::Address> local = fail(Errc::kClosed, "not tried");
    HolderRetry retry(env);
    for (bool again = true; again;) {
      local = server.listen(at);
      again = co_await retry.after(local);
    }
    if (!local) co_return std::unexpected(cannot_listen(at, local.error()));
    listening.push_back(std::move(*local));
  }
  co_return listening;
}

class KvSource final : public Monitor::Source {
 public:
  KvSource(const door::resp::DoorState& door, KvHealth& health) : door_(door), health_(health) {}

  ProcessState state() override {
    health_.look();
    return {.role = "kv", .uptime = door_.env.now() - door_.since, .health = health_.worst()};
  }
  task::Task<void> tell_metrics(MetricsText& text) override {
    door::resp::add_metrics(text, door_);
    co_return;
  }
  task::Task<Wellness> tell_health() override {
    Json reasons = Json::array();
    for (const KnownCondition& each : health_.look()) {
      reasons.push_back(condition_json(door_.env, each));
    }
    Json json = {{"schema_version", 1}, {"role", "kv"}, {"health", name(health_.worst())}};
    if (!reasons.empty()) json["reasons"] = std::move(reasons);
    co_return Wellness{.health = health_.worst(),
                       .json = json.dump(-1, ' ', true, Json::error_handler_t::replace)};
  }

 private:
  const door::resp::DoorState& door_;
  KvHealth& health_;
};

// At the doors of a keyspace, until the token is requested.
task::Task<Attempt<void>> serve_at_doors(env::Env& env, OpenKeyspace& keyspace, kv::Keyspace& keys,
                                         KvServeOptions& options, door::resp::RespOptions door,
                                         task::CancelToken token) {
  EventsDoor events(env, "kv", options.events, options.log);
  KvHealth health(env, keyspace, door.cluster, events.log());
  StrangerLog strangers(env, options.log);
  door.on_refused = [&strangers](const stream::RefusedConnection& connection) {
    strangers.note(connection, "client");
  };
  door::resp::RespServer server(env, keys, door);
  KvSource source(server.state(), health);
  Monitor monitor(env, source, &events.log(), options.http_token);
  if (options.has_source) options.has_source(&source);
  Attempt<std::vector<env::Address>> listening = co_await listen_at_all(env, server, options.resp);
  if (listening) {
    const Attempt<std::vector<env::Address>> looked_at = co_await monitor.listen(options.http);
    if (!looked_at) {
      listening = std::unexpected(looked_at.error());
    } else if (options.http_ready) {
      options.http_ready(*looked_at);
    }
  }
  if (listening) {
    const Attempt<void> asked = co_await events.listen();
    if (!asked) listening = std::unexpected(asked.error());
  }
  Attempt<void> outcome;
  task::Gate watching;
  task::CancelSource stop;
  if (listening) {
    watching.spawn(health.run(stop.token()));
    events.tell_begun();
    if (options.ready) options.ready(*listening);
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(token);
    events.tell_ending();
    co_await server.drain(env.now() + options.drain_timeout);
  } else {
    outcome = std::unexpected(listening.error());
  }
  if (options.has_source) options.has_source(nullptr);
  stop.request();
  co_await watching.close();
  co_await monitor.close();
  co_await server.close();
  co_await events.close();
  co_return outcome;
}

task::Task<Attempt<void>> serve_as_node(env::Env& env, KvServeOptions& options,
                                        OpenKeyspace& keyspace, door::resp::RespOptions door) {
  Attempt<std::unique_ptr<KvNode>> node =
      co_await KvNode::start(env, keyspace.keys(), *options.node, options.log);
  if (!node) co_return std::unexpected(node.error());
  door.cluster = {.self = (*node)->self(),
                  .view = [&node] { return (*node)->view(); },
                  .is_current = [&node] { return (*node)->is_current(); },
                  .counters = [&node] { return (*node)->counters(); }};
  Attempt<void> outcome = co_await serve_at_doors(env, keyspace, (*node)->keys(), options,
                                                  std::move(door), end_of(env, options));
  co_await (*node)->close();
  co_return outcome;
}

}  // namespace

task::Task<Attempt<void>> serve_keys(env::Env& env, KvServeOptions& options) {
  Attempt<std::unique_ptr<OpenKeyspace>> keyspace = co_await open_keyspace(env, options.keyspace);
  if (!keyspace) co_return std::unexpected(keyspace.error());
  door::resp::RespOptions door = options.door;
  door.keeper = (*keyspace)->keeper();
  door.durability = (*keyspace)->durability();
  Attempt<void> outcome;
  if (options.node) {
    outcome = co_await serve_as_node(env, options, **keyspace, std::move(door));
  } else {
    outcome = co_await serve_at_doors(env, **keyspace, (*keyspace)->keys(), options,
                                      std::move(door), end_of(env, options));
  }
  co_await (*keyspace)->close();
  co_return outcome;
}

}  // namespace cairn::server
