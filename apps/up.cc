// SPDX-License-Identifier: Apache-2.0
// `cairn up`: all of Cairn on one machine. There is nothing to serve yet, so it says what doctor
// says, for the back end that the options choose.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/backend.h"
#include "apps/command.h"
#include "apps/doctor/facts.h"
#include "apps/doctor/judge.h"
#include "apps/output.h"

namespace cairn::apps {

namespace {

class UpCommand final : public Command {
 public:
  explicit UpCommand(CLI::App& app) {
    add_settings(app, options_);
    set_examples(app,
                 {"cairn up", "cairn up --io epoll --cores 0,1", "cairn up --config cairn.toml"});
  }

  Attempt<int> run() override {
    const Attempt<Settings> settings = resolve(options_);
    if (!settings) return std::unexpected(settings.error());
    const doctor::Facts facts = doctor::gather();
    if (const Attempt<void> checked = check_cores(settings->cores, facts.cpu); !checked) {
      return std::unexpected(checked.error());
    }
    const Attempt<Backend> backend = choose_backend(settings->io, facts.uring);
    if (!backend) return std::unexpected(backend.error());
    const doctor::Diagnosis diagnosis = doctor::judge(facts);
    say(doctor::table_of(diagnosis));
    say(fmt::format("There is nothing to serve yet. The back end would be {}: {}.\n",
                    name(backend->io), backend->why));
    return diagnosis.can_run ? kExitOk : kExitFailed;
  }

 private:
  SettingsOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_up(CLI::App& app) { return std::make_unique<UpCommand>(app); }

}  // namespace cairn::apps
