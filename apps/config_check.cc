// SPDX-License-Identifier: Apache-2.0
// `cairn config check FILE`: whether a configuration file would be accepted, and what it says.
#include <fmt/format.h>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"
#include "server/config/keys.h"
#include "server/open/open_stack.h"

namespace cairn::apps {

namespace {

// A server starts without a drive whose host or key it cannot find; whoever asks is told here.
Attempt<void> look_up(const server::ServerConfig& config) {
  for (const server::SubsystemConfig& subsystem : config.server.subsystems) {
    for (const nvme::NamespaceOptions& each : subsystem.namespaces) {
      if (each.stack.empty()) continue;
      const auto plan = server::StackPlan::prepare(each.stack);
      if (plan) continue;
      return refuse(fmt::format("a drive of {} would not open:\n{}", subsystem.options.nqn,
                                plan.error().text));
    }
  }
  return {};
}

class ConfigCheckCommand final : public Command {
 public:
  explicit ConfigCheckCommand(CLI::App& app) {
    required(add_text(app, "FILE", path_, "the file, in TOML"));
    add_switch(app, "--json", json_, "for programs, also of a file that is not sound");
    set_examples(app, {"cairn config check cairn.toml", "cairn config check cairn.toml --json"});
  }

  Attempt<int> run() override {
    const Attempt<void> checked = check();
    if (json_) {
      nlohmann::ordered_json json = {
          {"schema_version", 1}, {"file", path_}, {"ok", checked.has_value()}};
      if (!checked) json["problem"] = checked.error().text;
      say(config::json_text(json));
      return checked ? kExitOk : kExitFailed;
    }
    if (!checked) return std::unexpected(checked.error());
    say(fmt::format("{}: ok\n", path_));
    return kExitOk;
  }

 private:
  Attempt<void> check() const {
    server::ServerConfig server;
    const Attempt<config::Settings> settings = config::resolve(
        {.config = path_},
        [&server](config::Section& root) { server::add_server_keys(root, server); });
    if (!settings) return std::unexpected(settings.error());
    return look_up(server);
  }

  std::string path_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_config_check(CLI::App& app) {
  return std::make_unique<ConfigCheckCommand>(app);
}

}  // namespace cairn::apps
