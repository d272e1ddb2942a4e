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

}  // namespace

task::Task<Attempt<void>> serve_keys(env::Env& env, KvServeOptions& options) {
  Attempt<std::unique_ptr<OpenKeyspace>> keyspace = co_await open_keyspace(env, options.keyspace);
  if (!keyspace) co_return std::unexpected(keyspace.error());
  StrangerLog strangers(env, options.log);
  door::resp::RespOptions door = options.door;
  door.keeper = (*keyspace)->keeper();
  door.durability = (*keyspace)->durability();
  door.on_refused = [&strangers](const stream::RefusedConnection& connection) {
    strangers.note(connection, "client");
  };
  Attempt<void> outcome;
  {
    door::resp::RespServer server(env, (*keyspace)->keys(), door);
    const Attempt<std::vector<env::Address>> listening =
        co_await listen_at_all(env, server, options.resp);
    if (listening) {
      if (options.ready) options.ready(*listening);
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
      co_await server.drain(env.now() + options.drain_timeout);
    } else {
      outcome = std::unexpected(listening.error());
    }
    co_await server.close();
  }
  co_await (*keyspace)->close();
  co_return outcome;
}

}  // namespace cairn::server
