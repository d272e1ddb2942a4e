// SPDX-License-Identifier: Apache-2.0
// `cairn drive check`: what a stack would be, or what is wrong with it.
#include <optional>
#include <string>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "config/json_text.h"
#include "server/open/check.h"
#include "server/serve/show.h"

namespace cairn::apps {

namespace {

constexpr int kSchemaVersion = 1;

class DriveCheckCommand final : public Command {
 public:
  explicit DriveCheckCommand(CLI::App& app) {
    add_value(app, "STACK", "a drive or a stack, as 'cairn serve' takes it",
              [this](const std::string& text) { return take(server::check_drive_args(text)); });
    add_value(app, "--file FILE", "a stack as TOML",
              [this](const std::string& text) { return take(server::check_stack_file(text)); });
    add_switch(app, "--json", json_, "for programs");
    set_examples(app, {"cairn drive check 'limit(mirror(file:/a, file:/b), iops=5000)'",
                       "cairn drive check --file stack.toml"});
  }

  Attempt<int> run() override {
    if (!stack_) return refuse("say what is to be checked: a STACK, or --file FILE");
    say(json_ ? config::json_text({{"schema_version", kSchemaVersion},
                                   {"stack", stack_->text()},
                                   {"layers", server::plan_json(*stack_)}})
              : server::plan_text(*stack_));
    return kExitOk;
  }

 private:
  Attempt<void> take(Attempt<drive::Stack> stack) {
    if (!stack) return std::unexpected(stack.error());
    if (stack_) return refuse("one stack at a time: a STACK, or --file FILE");
    stack_ = std::move(*stack);
    return {};
  }

  std::optional<drive::Stack> stack_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_drive_check(CLI::App& app) {
  return std::make_unique<DriveCheckCommand>(app);
}

}  // namespace cairn::apps
