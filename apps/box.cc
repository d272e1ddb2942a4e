// SPDX-License-Identifier: Apache-2.0
// `cairn box`: drives served over NVMe/TCP.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/box/serve.h"
#include "apps/command.h"
#include "apps/output.h"
#include "apps/world.h"

namespace cairn::apps {

namespace {

constexpr const char* kDefaultNqn = "nqn.2026-11.io.cairn:box";

Attempt<void> add_address(const std::string& text, std::vector<env::Address>& to) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(fmt::format("'{}' is no address: {}; write 127.0.0.1:4420 or [::]:4420", text,
                              address.error().what()));
  }
  to.push_back(std::move(*address));
  return {};
}

class BoxCommand final : public Command {
 public:
  explicit BoxCommand(CLI::App& app) {
    options_.subsystem.nqn = kDefaultNqn;
    add_values(app, "--listen ADDRESS", "where hosts connect, several allowed (127.0.0.1:4420)",
               [this](const std::string& text) { return add_address(text, options_.listen); });
    add_values(app, "--advertise ADDRESS", "what discovery tells hosts instead, one per --listen",
               [this](const std::string& text) { return add_address(text, options_.advertise); });
    add_value(app, "--nqn NQN", "name of the subsystem",
              [this](const std::string& text) -> Attempt<void> {
                options_.subsystem.nqn = text;
                return {};
              });
    add_values(app, "--drive DRIVE", "mem:size=1G or file:PATH,size=8G; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 auto spec = drive::Spec::parse(text);
                 if (!spec) return refuse(spec.error());
                 options_.namespaces.push_back({.drive = std::move(*spec)});
                 return {};
               });
    add_values(app, "--host NQN", "only these hosts may connect; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 options_.subsystem.hosts.push_back(text);
                 options_.subsystem.allow_any_host = false;
                 return {};
               });
    add_settings(app, settings_);
    set_examples(app, {"cairn box --drive mem:size=1G",
                       "cairn box --listen 0.0.0.0:4420 --drive file:/srv/d0,size=8G --cores 0,1"});
  }

  Attempt<int> run() override {
    if (options_.namespaces.empty()) {
      return refuse("a box needs a drive: add --drive mem:size=1G or --drive file:PATH,size=8G");
    }
    if (options_.listen.empty()) options_.listen.push_back(env::Address::loopback(4420));
    const Attempt<Settings> settings = resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    env::WorldOptions world_settings = world_options(*settings);
    world_settings.handle_signals = true;
    Attempt<std::unique_ptr<env::World>> world = make_world(settings->io, world_settings);
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran = (*world)->run([&](env::Env& env) { return serve(env, outcome); });
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }

 private:
  task::Task<void> serve(env::Env& env, Attempt<void>& outcome) {
    outcome = co_await serve_box(env, options_, [this](const auto& where) { greet(where); });
  }

  void greet(const std::vector<env::Address>& where) const {
    for (const env::Address& at : where) {
      say(fmt::format("serving {} at {}\n", options_.subsystem.nqn, at.text()));
      const std::string text = at.text();
      const size_t colon = text.rfind(':');
      say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}\n", text.substr(0, colon), at.port,
                      options_.subsystem.nqn));
    }
  }

  BoxOptions options_;
  SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_box(CLI::App& app) { return std::make_unique<BoxCommand>(app); }

}  // namespace cairn::apps
