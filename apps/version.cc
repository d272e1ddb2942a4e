// SPDX-License-Identifier: Apache-2.0
// `cairn version`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "apps/output.h"
#include "bench/build_info.h"

namespace cairn::apps {

namespace {

class VersionCommand final : public Command {
 public:
  Attempt<int> run() override {
    const bench::BuildInfo& info = bench::build_info();
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
