// SPDX-License-Identifier: Apache-2.0
// `cairn version`.
#include <fmt/format.h>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "report/build_info.h"

namespace cairn::apps {

namespace {

class VersionCommand final : public Command {
 public:
  Attempt<int> run() override {
    const report::BuildInfo& info = report::build_info();
    say(fmt::format("cairn {}\ncommit {}\n{}, {}\n", info.version, info.commit, info.compiler,
                    info.build_type));
    return kExitOk;
  }
};

}  // namespace

std::unique_ptr<Command> make_version(CLI::App& app) {
  set_examples(app, {"cairn version"});
  return std::make_unique<VersionCommand>();
}

}  // namespace cairn::apps
