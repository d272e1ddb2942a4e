// SPDX-License-Identifier: Apache-2.0
#include "server/arbiter/serve.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "arbiter/arbiter_host.h"
#include "arbiter/arbiter_server.h"
#include "arbiter/healer.h"
#include "arbiter/market/market_service.h"
#include "rack/client_keys.h"
#include "rpc/server.h"
#include "server/arbiter/metrics.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/common/stranger_log.h"
#include "server/monitor/monitor.h"
#include "server/open/mega_vols.h"
#include "server/open/store.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::server {

namespace {

// One for those of this machine, without keys, and one for all others.
class Doors {
 public:
  Doors(env::Env& env, arbiter::ArbiterHost& host, arbiter::MarketService& market,
        const ArbiterServeOptions& options)
      : env_(env),
        strangers_(env, options.log),
        near_(env, host, options.name, {}),
        far_(env, host, options.name, far_options(options)) {
    for (arbiter::ArbiterServer* each : {&near_, &far_}) {
      each->add(market);
      each->add(market.view());
    }
  }

  task::Task<Attempt<std::vector<env::Address>>> listen(std::vector<env::Address> addresses) {
    std::vector<env::Address> listening;
    for (const env::Address& at : addresses) {
      Result<env::Address> local = fail(Errc::kClosed, "not tried");
      HolderRetry retry(env_);
      for (bool again = true; again;) {
        local = (at.family == env::Address::Family::kLocal ? near_ : far_).listen(at);
        again = co_await retry.after(local);
      }
      if (!local) co_return std::unexpected(cannot_listen(at, local.error()));
      listening.push_back(std::move(*local));
    }
    co_return listening;
  }
  task::Task<void> close() {
    co_await near_.close();
    co_await far_.close();
  }

 private:
  rpc::ServerOptions far_options(const ArbiterServeOptions& options) {
    return {.clients = options.clients,
            .on_refused = [this, keys = options.clients](const rpc::RefusedClient& client) {
              const std::optional<std::string> name = rack::name_in(client.identity);
              strangers_.note(client, name && keys && keys->has_name(*name));
            }};
  }

  env::Env& env_;
  StrangerLog strangers_;
  arbiter::ArbiterServer near_;
  arbiter::ArbiterServer far_;
};

}  // namespace

task::Task<Attempt<void>> serve_arbiter(env::Env& env, ArbiterServeOptions& options) {
  Attempt<std::unique_ptr<meta::Store>> store = co_await open_store(env, options.store);
  if (!store) co_return std::unexpected(store.error());
  const MegaVols drives(env);
  Attempt<void> outcome;
  {
    arbiter::Market market(env, options.market);
    EventsDoor events(env, "arbiter", options.events, options.log);
    std::optional<ArbiterHealth> health;  // once there is a host
    // No coroutine: the host outlives no call of it.
    const auto on_change = [&market, &options, &health](bool is_leading) {
      market.begin_anew();
      health->tell_leading(is_leading);
      if (options.on_change) options.on_change(is_leading);
    };
    arbiter::Healer healer(env, drives.source(), {.name = options.name});
    arbiter::ArbiterHost host(env,
                              {.store = **store,
                               .source = drives.source(),
                               .fence = drives.fence(),
                               .loads = &market,
                               .judge = &market,
                               .tenant = &healer},
                              {.arbiter = {.host = options.name, .lease = options.lease},
                               .election_ttl = options.election_ttl,
                               .on_change = on_change});
    arbiter::MarketService services(env, host, market);
    Doors doors(env, host, services, options);
    health.emplace(env, host, options.name, events.log());
    ArbiterSource source(env, host, *health);
    Monitor monitor(env, source, &events.log(), options.http_token);
    if (options.has_source) options.has_source(&source);
    Attempt<std::vector<env::Address>> listening = co_await doors.listen(options.listen);
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
    if (listening) {
      events.tell_begun();
      if (options.ready) options.ready(*listening);
      task::Gate gate;
      task::CancelSource stop;
      gate.spawn(host.run());
      task::Gate healing;
      healing.spawn(healer.run(host));
      gate.spawn(health->run(stop.token()));
      task::Event never;
      const Result<void> stopped =
          co_await never.wait(options.until.can_cancel() ? options.until : env.stop_token());
      (void)stopped;
      events.tell_ending();
      if (options.has_source) options.has_source(nullptr);
      co_await monitor.close();
      co_await doors.close();
      stop.request();
      healer.stop();
      co_await healing.close();
      host.stop();
      co_await gate.close();
    } else {
      outcome = std::unexpected(listening.error());
      if (options.has_source) options.has_source(nullptr);
      co_await monitor.close();
      co_await doors.close();
    }
    co_await events.close();
  }
  co_await (*store)->close();
  co_return outcome;
}

}  // namespace cairn::server
