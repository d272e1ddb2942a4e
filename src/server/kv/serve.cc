// SPDX-License-Identifier: Apache-2.0
#include "server/kv/serve.h"

#include <memory>
#include <utility>

#include "door/resp/server.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/common/stranger_log.h"
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

// At the doors of a keyspace, until the token is requested.
task::Task<Attempt<void>> serve_at_doors(env::Env& env, kv::Keyspace& keys, KvServeOptions& options,
                                         door::resp::RespOptions door, task::CancelToken token) {
  StrangerLog strangers(env, options.log);
  door.on_refused = [&strangers](const stream::RefusedConnection& connection) {
    strangers.note(connection, "client");
  };
  door::resp::RespServer server(env, keys, door);
  const Attempt<std::vector<env::Address>> listening =
      co_await listen_at_all(env, server, options.resp);
  Attempt<void> outcome;
  if (listening) {
    if (options.ready) options.ready(*listening);
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(token);
    co_await server.drain(env.now() + options.drain_timeout);
  } else {
    outcome = std::unexpected(listening.error());
  }
  co_await server.close();
  co_return outcome;
}

task::Task<Attempt<void>> serve_as_node(env::Env& env, KvServeOptions& options, kv::Keyspace& store,
                                        door::resp::RespOptions door) {
  Attempt<std::unique_ptr<KvNode>> node =
      co_await KvNode::start(env, store, *options.node, options.log);
  if (!node) co_return std::unexpected(node.error());
  door.cluster = {.self = (*node)->self(), .view = [&node] { return (*node)->view(); }};
  Attempt<void> outcome =
      co_await serve_at_doors(env, (*node)->keys(), options, std::move(door), end_of(env, options));
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
    outcome = co_await serve_as_node(env, options, (*keyspace)->keys(), std::move(door));
  } else {
    outcome = co_await serve_at_doors(env, (*keyspace)->keys(), options, std::move(door),
                                      end_of(env, options));
  }
  co_await (*keyspace)->close();
  co_return outcome;
}

}  // namespace cairn::server
