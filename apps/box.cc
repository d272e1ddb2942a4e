// SPDX-License-Identifier: Apache-2.0
// `cairn box`: drives served over NVMe/TCP.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "apps/box/control_place.h"
#include "apps/box/drive_option.h"
#include "apps/box/serve.h"
#include "apps/command.h"
#include "apps/log.h"
#include "apps/output.h"
#include "apps/words.h"
#include "apps/world.h"

namespace cairn::apps {

namespace {

constexpr const char* kDefaultNqn = "nqn.2026-11.io.cairn:box";

Attempt<void> add_address(const std::string& text, std::vector<env::Address>& to) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(fmt::format("{} is no address: {}; write 127.0.0.1:4420 or [::]:4420",
                              in_quotes(text), address.error().what()));
  }
  to.push_back(std::move(*address));
  return {};
}

class BoxCommand final : public Command {
 public:
  explicit BoxCommand(CLI::App& app) {
    subsystem_.options.nqn = kDefaultNqn;
    add_values(app, "--listen ADDRESS", "where hosts connect, several allowed (127.0.0.1:4420)",
               [this](const std::string& text) { return add_address(text, listen_); });
    add_values(app, "--advertise ADDRESS", "what discovery tells hosts instead, one per --listen",
               [this](const std::string& text) { return add_address(text, advertise_); });
    add_value(app, "--nqn NQN", "name of the subsystem",
              [this](const std::string& text) -> Attempt<void> {
                subsystem_.options.nqn = text;
                return {};
              });
    add_values(app, "--drive DRIVE", "mem:size=1G or file:PATH,size=8G; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 Attempt<drive::Spec> spec = parse_drive(text);
                 if (!spec) return std::unexpected(spec.error());
                 subsystem_.namespaces.push_back({.drive = std::move(*spec)});
                 return {};
               });
    add_values(app, "--host NQN", "only these hosts may connect; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 subsystem_.options.hosts.push_back(text);
                 subsystem_.options.allow_any_host = false;
                 return {};
               });
    add_value(app, "--control PATH", "the control socket, or off (made from the first port)",
              [this](const std::string& text) -> Attempt<void> {
                control_ = text;
                if (text == "off") return {};
                const Attempt<std::string> checked = check_control_path(text);
                if (!checked) return std::unexpected(checked.error());
                return {};
              });
    add_settings(app, settings_);
    set_examples(app, {"cairn box --drive mem:size=1G",
                       "cairn box --listen 0.0.0.0:4420 --drive file:/srv/d0,size=8G --cores 0,1"});
  }

  Attempt<int> run() override {
    if (subsystem_.namespaces.empty()) {
      return refuse("a box needs a drive: add --drive mem:size=1G or --drive file:PATH,size=8G");
    }
    if (listen_.empty()) listen_.push_back(env::Address::loopback(4420));
    const Attempt<Settings> settings = resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    ServeOptions options;
    for (size_t i = 0; i < listen_.size(); ++i) {
      BoxListener listener{.address = listen_[i]};
      if (i < advertise_.size()) listener.advertise = advertise_[i];
      options.box.listeners.push_back(std::move(listener));
    }
    options.box.subsystems.push_back(subsystem_);
    options.hooks.log = log_to_stderr(settings->log_level);
    if (control_.empty()) {
      options.control_path = make_control_path;
    } else if (control_ != "off") {
      options.control_path = [this](uint16_t) -> Attempt<std::string> { return control_; };
    }
    options.ready = [this](const Box& box, const std::string& control) { greet(box, control); };
    return serve(*settings, options);
  }

 private:
  Attempt<int> serve(const Settings& settings, const ServeOptions& options) {
    ::umask(0077);  // drives and sockets are this user's alone
    env::WorldOptions world_settings = world_options(settings);
    world_settings.handle_signals = true;
    Attempt<std::unique_ptr<env::World>> world = make_world(settings.io, world_settings);
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return serve_in(env, options, outcome); });
    if (!socket_.empty()) ::unlink(socket_.c_str());
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }
  static task::Task<void> serve_in(env::Env& env, const ServeOptions& options,
                                   Attempt<void>& outcome) {
    outcome = co_await serve_box(env, options);
  }

  void greet(const Box& box, const std::string& control) {
    socket_ = control;
    for (const env::Address& at : box.listening()) {
      say(fmt::format("serving {} at {}\n", subsystem_.options.nqn, at.text()));
      const std::string text = at.text();
      const size_t colon = text.rfind(':');
      say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}\n", text.substr(0, colon), at.port,
                      subsystem_.options.nqn));
    }
    say("Ctrl-C, or a SIGTERM, is how to stop it\n");
    finish_output();
  }

  std::vector<env::Address> listen_;
  std::vector<env::Address> advertise_;
  BoxSubsystem subsystem_;
  std::string control_;
  std::string socket_;  // made by us
  SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_box(CLI::App& app) { return std::make_unique<BoxCommand>(app); }

}  // namespace cairn::apps
