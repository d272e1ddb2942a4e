// SPDX-License-Identifier: Apache-2.0
// `cairn kv check`: whether a drive of keys and values is whole.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/common/output.h"
#include "apps/kv/commands.h"
#include "config/json_text.h"
#include "server/kv/check.h"
#include "server/open/open_stack.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

task::Task<void> check_in(env::Env& env, std::string stack,
                          Attempt<kv::store::CheckReport>& outcome) {
  outcome = co_await server::check_store(env, std::move(stack));
}

class CheckCommand final : public Command {
 public:
  explicit CheckCommand(CLI::App& app) {
    required(add_argument(app, "STACK", "the drive; nobody serves it meanwhile",
                          [this](const std::string& text) -> Attempt<void> {
                            const auto understood =
                                server::StackPlan::prepare(text, server::LookUp::kWhenOpened);
                            if (!understood) return std::unexpected(understood.error());
                            stack_ = text;
                            return {};
                          }));
    add_switch(app, "--json", json_, "for programs");
    add_settings(app, settings_);
    set_examples(app, {"cairn kv check file:/srv/kv"});
  }

  Attempt<int> run() override {
    const Attempt<config::Settings> settings = config::resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(settings->io, config::world_options(*settings));
    if (!world) return std::unexpected(world.error());
    Attempt<kv::store::CheckReport> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return check_in(env, stack_, outcome); });
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    json_ ? show_json(*outcome) : show(*outcome);
    if (!finish_output()) return kExitFailed;
    return outcome->damaged == 0 ? kExitOk : kExitFailed;
  }

 private:
  static void show(const kv::store::CheckReport& report) {
    for (const std::string& what : report.what) say(what + "\n");
    const std::string damage =
        report.damaged == 0 ? "nothing is damaged" : fmt::format("{} are damaged", report.damaged);
    say(fmt::format("{} keys in {} segments, {} bytes: {}\n", report.keys, report.segments,
                    report.live_bytes, damage));
  }

  static void show_json(const kv::store::CheckReport& report) {
    say(config::json_text({{"schema_version", 1},
                           {"keys", report.keys},
                           {"segments", report.segments},
                           {"live_bytes", report.live_bytes},
                           {"damaged", report.damaged},
                           {"what", report.what}}));
  }

  std::string stack_;
  bool json_ = false;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_kv_check(CLI::App& app) {
  return std::make_unique<CheckCommand>(app);
}

}  // namespace cairn::apps
