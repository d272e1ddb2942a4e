// SPDX-License-Identifier: Apache-2.0
// `cairn rack serve`: metadata in a folder of this machine, for boxes and commands.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "apps/box/patience.h"
#include "apps/output.h"
#include "apps/rack/store.h"
#include "apps/rack_commands.h"
#include "apps/words.h"
#include "apps/world.h"
#include "meta/server.h"
#include "task/sync.h"

namespace cairn::apps {

namespace {

struct Serving {
  StoreUri uri;
  env::Address at;
};

task::Task<void> serve_in(env::Env& env, Serving serving, Attempt<void>& outcome) {
  Attempt<std::unique_ptr<meta::Store>> store = co_await open_store(env, serving.uri);
  if (!store) {
    outcome = std::unexpected(store.error());
    co_return;
  }
  meta::Server server(env, **store);
  Result<env::Address> at = fail(Errc::kClosed, "not tried");
  Patience patience(env);
  for (bool again = true; again;) {
    at = server.listen(serving.at);
    again = co_await patience.after(at);
  }
  if (at) {
    say(
        fmt::format("serving the metadata of {} at {}\n  cairn rack offers --rack meta://{}\n"
                    "Ctrl-C or SIGTERM stops it in order, a second one at once.\n",
                    serving.uri.folder, at->text(), at->text()));
    finish_output();
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
  } else {
    outcome = refuse(fmt::format("cannot listen at {}: {}: choose another with --listen",
                                 serving.at.text(), at.error().text()));
  }
  co_await server.close();
  co_await (*store)->close();
}

class ServeCommand final : public Command {
 public:
  explicit ServeCommand(CLI::App& app) {
    add_value(app, "FOLDER", "where the metadata is kept, made if it is not there",
              [this](const std::string& text) -> Attempt<void> {
                serving_.uri = {.kind = StoreUri::Kind::kFolder, .folder = text};
                return {};
              })
        ->required();
    serving_.at = env::Address::loopback(kMetaPort);
    add_value(app, "--listen ADDRESS", fmt::format("where it is asked ({})", serving_.at.text()),
              [this](const std::string& text) -> Attempt<void> {
                Result<env::Address> at = env::Address::parse(text);
                if (!at || at->family == env::Address::Family::kLocal) {
                  return refuse(fmt::format("{} is no address: write 127.0.0.1:{}", in_quotes(text),
                                            kMetaPort));
                }
                serving_.at = std::move(*at);
                return {};
              });
    set_examples(app, {"cairn rack serve /var/lib/cairn/rack"});
  }

  Attempt<int> run() override {
    env::WorldOptions options;
    options.handle_signals = true;
    Attempt<std::unique_ptr<env::World>> world = make_world(IoChoice::kEpoll, options);
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return serve_in(env, serving_, outcome); });
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }

 private:
  Serving serving_;
};

}  // namespace

std::unique_ptr<Command> make_rack_serve(CLI::App& app) {
  return std::make_unique<ServeCommand>(app);
}

}  // namespace cairn::apps
