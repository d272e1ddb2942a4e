// SPDX-License-Identifier: Apache-2.0
// `cairn rack serve`: metadata in a folder of this machine, for boxes and commands.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/client_keys.h"
#include "apps/common/control.h"
#include "apps/common/http.h"
#include "apps/common/log.h"
#include "apps/common/output.h"
#include "apps/rack/commands.h"
#include "base/words.h"
#include "meta/server.h"
#include "rack/client_keys.h"
#include "rpc/client_keys.h"
#include "server/common/holder_retry.h"
#include "server/common/reach.h"
#include "server/common/stranger_log.h"
#include "server/events/events_door.h"
#include "server/monitor/monitor.h"
#include "server/monitor/plain_source.h"
#include "server/open/store.h"
#include "task/sync.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

struct Serving {
  server::StoreUri uri;
  env::Address at;
  std::shared_ptr<const rpc::ClientKeys> clients;  // none: everybody who reaches it
  std::vector<env::Address> http;
  std::optional<crypto::Digest> http_token;
  server::EventsDoorOptions events;
  std::vector<std::string> sockets;  // to be removed at the end
};

std::string greeting(const Serving& serving, const env::Address& at) {
  const std::string who =
      serving.clients == nullptr
          ? server::is_of_this_machine(at) ? "" : ", to everybody who reaches it (--insecure)"
          : fmt::format(", through TLS, to {} client{}", serving.clients->size(),
                        serving.clients->size() == 1 ? "" : "s");
  const std::string uri = serving.clients == nullptr
                              ? fmt::format("meta://{}", at.text())
                              : fmt::format("'meta://{}?tls_key=FILE&name=NAME'", at.text());
  return fmt::format(
      "serving the metadata of {} at {}{}\n  cairn rack offers --rack {}\n"
      "Ctrl-C or SIGTERM stops it in order, a second one at once.\n",
      serving.uri.folder, at.text(), who, uri);
}

void note(server::StrangerLog& strangers, const Serving& serving,
          const rpc::RefusedClient& client) {
  const std::optional<std::string> name = rack::name_in(client.identity);
  strangers.note(client, name && serving.clients && serving.clients->has_name(*name));
}

// Where it is looked at, and asked for events.
task::Task<Attempt<void>> open_doors(server::Monitor& monitor, server::EventsDoor& events,
                                     Serving& serving) {
  const auto looked_at = co_await monitor.listen(serving.http);
  if (!looked_at) co_return std::unexpected(looked_at.error());
  greet_http(*looked_at, serving.sockets);
  const Attempt<void> asked = co_await events.listen();
  co_return asked;
}

task::Task<void> serve_in(env::Env& env, Serving& serving, Attempt<void>& outcome) {
  Attempt<std::unique_ptr<meta::Store>> store = co_await server::open_store(env, serving.uri);
  if (!store) {
    outcome = std::unexpected(store.error());
    co_return;
  }
  server::StrangerLog strangers(env, log_to_stderr(config::LogLevel::kInfo));
  meta::Server server(
      env, **store,
      {.clients = serving.clients,
       .on_refused = [&](const rpc::RefusedClient& client) { note(strangers, serving, client); }});
  Result<env::Address> at = fail(Errc::kClosed, "not tried");
  server::HolderRetry retry(env);
  for (bool again = true; again;) {
    at = server.listen(serving.at);
    again = co_await retry.after(at);
  }
  server::EventsDoor events(env, "rack", serving.events, log_to_stderr(config::LogLevel::kInfo));
  server::PlainSource source(env, "rack");
  server::Monitor monitor(env, source, &events.log(), serving.http_token);
  if (at) outcome = co_await open_doors(monitor, events, serving);
  if (at && outcome) {
    events.tell_begun();
    say(greeting(serving, *at));
    finish_output();
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
    events.tell_ending();
  } else if (!at) {
    outcome = refuse(fmt::format("cannot listen at {}: {}: choose another with --listen",
                                 serving.at.text(), at.error().text()));
  }
  co_await monitor.close();
  co_await events.close();
  co_await server.close();
  co_await (*store)->close();
}

class ServeCommand final : public Command {
 public:
  explicit ServeCommand(CLI::App& app) {
    required(add_value(app, "FOLDER", "where the metadata is kept, made if it is not there",
                       [this](const std::string& text) -> Attempt<void> {
                         serving_.uri = {.kind = server::StoreUri::Kind::kFolder, .folder = text};
                         return {};
                       }));
    serving_.at = env::Address::loopback(server::kMetaPort);
    add_value(app, "--listen ADDRESS", fmt::format("where it is asked ({})", serving_.at.text()),
              [this](const std::string& text) -> Attempt<void> {
                Result<env::Address> at = env::Address::parse(text);
                if (!at || at->family == env::Address::Family::kLocal) {
                  return refuse(fmt::format("{} is no address: write 127.0.0.1:{}", in_quotes(text),
                                            server::kMetaPort));
                }
                serving_.at = std::move(*at);
                return {};
              });
    add_client_keys(
        app,
        "clients must come through TLS with a key of this file, lines of ROLE NAME KEY; a "
        "reader may get, list and watch, a writer may do everything",
        serving_.clients);
    add_http(app, serving_.http, http_token_);
    add_control(app, control_);
    add_on_event(app, serving_.events.own.command);
    add_switch(app, "--insecure", is_insecure_,
               "without keys, at an address that others reach: they can change and remove all of "
               "it");
    set_examples(app, {"cairn rack serve /var/lib/cairn/rack",
                       "cairn rack serve /var/lib/cairn/rack --listen 10.0.0.9:4430 --tls-keys "
                       "rack.keys"});
  }

  Attempt<int> run() override {
    if (is_insecure_ && serving_.clients != nullptr) {
      return refuse("--tls-keys and --insecure exclude each other: leave one out");
    }
    if (serving_.clients == nullptr && !is_insecure_ && !server::is_of_this_machine(serving_.at)) {
      return refuse(fmt::format(
          "whoever reaches {} could change and remove all metadata: say with --tls-keys "
          "FILE who may, listen at 127.0.0.1, or write --insecure if nobody else is on "
          "that network",
          serving_.at.text()));
    }
    Attempt<std::optional<crypto::Digest>> token = read_http_token(http_token_);
    if (!token) return std::unexpected(token.error());
    serving_.http_token = std::move(*token);
    serving_.events.control_path = control_path(control_, "rack");
    serving_.events.control_ready = [this](const std::string& path) {
      ::chmod(path.c_str(), 0600);
      serving_.sockets.push_back(path);
    };
    ::umask(0077);  // sockets are this user's alone
    env::WorldOptions options;
    options.handle_signals = true;
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(config::IoChoice::kEpoll, options);
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return serve_in(env, serving_, outcome); });
    for (const std::string& socket : serving_.sockets) ::unlink(socket.c_str());
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }

 private:
  Serving serving_;
  std::string control_;
  std::string http_token_;
  bool is_insecure_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rack_serve(CLI::App& app) {
  return std::make_unique<ServeCommand>(app);
}

}  // namespace cairn::apps
