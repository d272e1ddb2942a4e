// SPDX-License-Identifier: Apache-2.0
// `cairn version`.
#include <fmt/format.h>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"
#include "report/build_info.h"

namespace cairn::apps {

namespace {

class VersionCommand final : public Command {
 public:
  explicit VersionCommand(CLI::App& app) {
    add_switch(app, "--json", json_, "for programs");
    set_examples(app, {"cairn version", "cairn version --json"});
  }
  Attempt<int> run() override {
    const report::BuildInfo& info = report::build_info();
    if (json_) {
      say(config::json_text({{"schema_version", 1},
                             {"version", info.version},
                             {"commit", info.commit},
                             {"compiler", info.compiler},
                             {"build_type", info.build_type}}));
      return kExitOk;
    }
    say(fmt::format("cairn {}\ncommit {}\n{}, {}\n", info.version, info.commit, info.compiler,
                    info.build_type));
    return kExitOk;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_version(CLI::App& app) {
  return std::make_unique<VersionCommand>(app);
}

}  // namespace cairn::apps
