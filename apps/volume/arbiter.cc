// SPDX-License-Identifier: Apache-2.0
// `cairn arbiter`: the control plane of elastic volumes, one process of several. `cairn arbiter
// status`: which of them runs, and which leads.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/client_keys.h"
#include "apps/common/control.h"
#include "apps/common/http.h"
#include "apps/common/log.h"
#include "apps/common/output.h"
#include "apps/volume/client.h"
#include "apps/volume/commands.h"
#include "base/duration.h"
#include "base/table.h"
#include "base/words.h"
#include "server/arbiter/serve.h"
#include "server/common/reach.h"
#include "server/common/run_folder.h"
#include "server/open/target_uri.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

using arbiter::ArbiterView;

class ArbiterCommand final : public Command {
 public:
  explicit ArbiterCommand(CLI::App& app) {
    add_value(app, "--meta META",
              "where the pool is kept: rocks:FOLDER of this machine, for one arbiter; "
              "etcd://ADDR:PORT or meta://ADDR:PORT for several, with options as 'cairn rack "
              "offers --help' has them",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<server::StoreUri> uri = server::StoreUri::parse(text);
                if (!uri) return std::unexpected(uri.error());
                options_.store = std::move(*uri);
                meta_ = text;
                return {};
              });
    add_values(app, "--listen ADDRESS",
               "ADDR:PORT or unix:SOCKET for clients and operators, several allowed (a socket of "
               "this user)",
               [this](const std::string& text) -> Attempt<void> {
                 Result<env::Address> at = env::Address::parse(text);
                 if (!at) {
                   return refuse(fmt::format("{} is no address: write 127.0.0.1:{} or unix:SOCKET",
                                             in_quotes(text), server::kArbiterPort));
                 }
                 options_.listen.push_back(std::move(*at));
                 return {};
               });
    add_client_keys(
        app,
        "who comes from other machines must do so through TLS with a key of this file, lines "
        "of ROLE NAME KEY; a reader may look, a writer may do everything",
        options_.clients);
    add_switch(app, "--insecure", is_insecure_,
               "without keys, at an address that others reach: they can destroy all volumes");
    add_size(app, "--drive-rate RATE", options_.market.drive_bytes_per_s,
             "bytes a second that a drive of the pool reads at most (2G)");
    add_size(
        app, "--drive-floor RATE", options_.market.drive_floor,
        "bytes a second that each does whatever is asked of it, of which floors of volumes are "
        "promised (200M)");
    add_size(app, "--port-rate RATE", options_.market.port_bytes_per_s,
             "bytes a second that a port of a box carries in each direction (12500M)");
    add_http(app, options_.http, http_token_);
    add_control(app, control_);
    add_on_event(app, options_.events.own.command);
    add_value(app, "--lease TIME", "how long clients go on when no arbiter answers (120s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                if (*time < kLeaseMin || *time > kLeaseMax) {
                  return refuse("a lease has from 2s to 1h");
                }
                options_.lease = *time;
                return {};
              });
    set_examples(app, {"cairn arbiter --meta rocks:/var/lib/cairn/pool",
                       "cairn arbiter --meta etcd://10.0.0.1:2379 --listen 10.0.0.1:4440 "
                       "--tls-keys pool.keys"});
  }

  Attempt<int> run() override {
    if (const Attempt<void> ready = prepare(); !ready) return std::unexpected(ready.error());
    ::umask(0077);  // sockets are this user's alone
    env::WorldOptions options;
    options.handle_signals = true;
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(config::IoChoice::kEpoll, options);
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return serve_in(env, options_, outcome); });
    for (const std::string& socket : sockets_) ::unlink(socket.c_str());
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }

 private:
  static constexpr uint64_t kRateMax = 1'000'000'000'000;
  static constexpr Duration kLeaseMin = 2_s;
  static constexpr Duration kLeaseMax = 3600_s;

  static task::Task<void> serve_in(env::Env& env, server::ArbiterServeOptions& options,
                                   Attempt<void>& outcome) {
    outcome = co_await server::serve_arbiter(env, options);
  }

  Attempt<void> prepare() {
    if (meta_.empty()) {
      return refuse(
          "say where the pool is kept: --meta rocks:FOLDER on this machine, or etcd://ADDR:PORT");
    }
    const arbiter::MarketOptions& market = options_.market;
    const auto is_speed = [](uint64_t rate) { return rate >= 1'000'000 && rate <= kRateMax; };
    if (!is_speed(market.drive_bytes_per_s) || !is_speed(market.drive_floor) ||
        !is_speed(market.port_bytes_per_s) || market.drive_floor > market.drive_bytes_per_s) {
      return refuse(
          "--drive-rate, --drive-floor and --port-rate have 1M to 900G, and a drive reads no less "
          "than its floor");
    }
    if (options_.clients != nullptr && is_insecure_) {
      return refuse("--tls-keys and --insecure exclude each other: leave one out");
    }
    for (const env::Address& at : options_.listen) {
      if (options_.clients || is_insecure_ || server::is_of_this_machine(at)) continue;
      return refuse(fmt::format(
          "whoever reaches {} could destroy all volumes: say with --tls-keys FILE who may come, "
          "listen at 127.0.0.1, or write --insecure if nobody else is on that network",
          at.text()));
    }
    if (options_.listen.empty()) {
      const Attempt<std::string> folder = server::make_run_folder("name an address with --listen");
      if (!folder) return std::unexpected(folder.error());
      Result<env::Address> at = env::Address::parse(server::own_arbiter());
      if (!at) return refuse("the folder of this user's sockets is too long: write --listen");
      options_.listen.push_back(std::move(*at));
    }
    options_.name = fmt::format("{}-{}", server::gather_host().machine_name, ::getpid());
    options_.log = log_to_stderr(config::LogLevel::kInfo);
    Attempt<std::optional<crypto::Digest>> token = read_http_token(http_token_);
    if (!token) return std::unexpected(token.error());
    options_.http_token = std::move(*token);
    options_.events.control_path = control_path(control_, "arbiter");
    options_.events.control_ready = [this](const std::string& path) {
      ::chmod(path.c_str(), 0600);
      sockets_.push_back(path);
    };
    options_.http_ready = [this](const std::vector<env::Address>& all) {
      greet_http(all, sockets_);
    };
    options_.ready = [this](const std::vector<env::Address>& all) { greet(all); };
    options_.on_change = [](bool is_leading) {
      say(is_leading ? "it leads\n" : "it stands by\n");
      finish_output();
    };
    return {};
  }

  void greet(const std::vector<env::Address>& all) {
    std::string text;
    for (const env::Address& at : all) {
      if (at.family == env::Address::Family::kLocal) sockets_.push_back(at.path);
      text += fmt::format("arbiter {} of the pool in {} at {}\n", options_.name, meta_, at.text());
      text += fmt::format("  cairn pool list --arbiter {}\n", at.text());
    }
    say(text + "Ctrl-C or SIGTERM stops it in order, a second one at once.\nit stands by\n");
    finish_output();
  }

  server::ArbiterServeOptions options_;
  std::string meta_;
  bool is_insecure_ = false;
  std::string control_;
  std::string http_token_;
  std::vector<std::string> sockets_;
};

// An arbiter that was asked.
struct Asked {
  std::string at;
  std::string problem;  // it does not answer
  ArbiterView view;
};

class StatusCommand final : public Command {
 public:
  explicit StatusCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn arbiter status",
                       "cairn arbiter status --arbiter 10.0.0.1:4440,10.0.0.2:4440 --json"});
  }

  Attempt<int> run() override {
    const Attempt<std::vector<Asked>> all =
        run_errand<std::vector<Asked>>([this](env::Env& env) { return ask_all(env); });
    if (!all) return std::unexpected(all.error());
    nlohmann::ordered_json json = {{"schema_version", 1},
                                   {"arbiters", nlohmann::ordered_json::array()}};
    std::vector<std::vector<std::string>> rows = {{"ARBITER", "NAME", "STATE"}};
    bool has_leader = false;
    for (const Asked& each : *all) {
      has_leader |= each.view.is_leading;
      std::string state = each.view.is_leading ? "leads" : "stands by";
      if (!each.problem.empty()) state = "no answer";
      const std::string& why = each.problem.empty() ? each.view.problem : each.problem;
      json["arbiters"].push_back(
          {{"address", each.at}, {"name", each.view.host}, {"state", state}, {"problem", why}});
      rows.push_back({each.at, escaped(each.view.host),
                      why.empty() ? state : fmt::format("{}: {}", state, escaped(why))});
    }
    client_.print(json, table_text(rows));
    return has_leader ? kExitOk : kExitFailed;
  }

 private:
  task::Task<Attempt<std::vector<Asked>>> ask_all(env::Env& env) const {
    std::vector<Asked> all;
    for (const env::Address& at : client_.uri().servers) {
      server::ArbiterUri one = client_.uri();
      one.servers = {at};
      const ArbiterClient::Errand<ArbiterView> errand =
          [this](env::Env& here, ArbiterClient::Arbiter& arbiter, task::CancelToken token) {
            return ask(here, arbiter, token);
          };
      Attempt<ArbiterView> view = co_await client_.run_at<ArbiterView>(env, one, errand);
      Asked asked{.at = at.text(), .problem = "", .view = {}};
      if (view) {
        asked.view = std::move(*view);
      } else {
        asked.problem = view.error().text;
      }
      all.push_back(std::move(asked));
    }
    co_return all;
  }

  // One that runs answers at once.
  task::Task<Attempt<ArbiterView>> ask(env::Env& env, ArbiterClient::Arbiter& arbiter,
                                       task::CancelToken token) const {
    task::Deadline soon(env, env.now() + 3_s, token);
    auto said = co_await arbiter.ask<ArbiterView>(arbiter::StatusRequest{}, soon.token());
    if (!said) co_return refuse(said.error().text);
    co_return std::move(*said);
  }

  ArbiterClient client_;
};

}  // namespace

std::unique_ptr<Command> make_arbiter(CLI::App& app) {
  return std::make_unique<ArbiterCommand>(app);
}
std::unique_ptr<Command> make_arbiter_status(CLI::App& app) {
  return std::make_unique<StatusCommand>(app);
}

}  // namespace cairn::apps
