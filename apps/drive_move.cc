// SPDX-License-Identifier: Apache-2.0
// `cairn drive move`: a drive that is served, its layers in another process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "apps/box/control_client.h"
#include "apps/box/control_place.h"
#include "apps/command.h"
#include "apps/drive_client.h"
#include "apps/errand.h"
#include "apps/json_text.h"
#include "apps/output.h"
#include "drive/size_text.h"

namespace cairn::apps {

namespace {

constexpr Duration kPatience = 10_s;

class MoveCommand final : public Command {
 public:
  explicit MoveCommand(CLI::App& app) : client_(app) {
    add_value(app, "NAME", "the drive", [this](const std::string& text) -> Attempt<void> {
      request_.drive = text;
      return {};
    })->required();
    add_value(app, "--to PATH", "the control socket of the box; without it the only box here",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<std::string> path = check_control_path(text);
                if (!path) return std::unexpected(path.error());
                request_.box = std::move(*path);
                return {};
              });
    add_value(app, "--via URI", "how the box is reached, when not as it says itself",
              [this](const std::string& text) -> Attempt<void> {
                request_.via = text;
                return {};
              });
    add_switch(app, "--back", back_, "from the box to who serves the drive");
    add_switch(app, "--json", json_, "print the answer as one JSON object");
    request_.command = ControlRequest::Command::kDriveMove;
    set_examples(app, {"cairn drive move safe", "cairn drive move safe --to /run/card/box.sock",
                       "cairn drive move safe --back"});
  }

  Attempt<int> run() override {
    if (back_ && !(request_.box.empty() && request_.via.empty())) {
      return refuse("a drive comes back from where it is: leave out --to and --via");
    }
    if (!back_ && request_.box.empty()) {
      Attempt<std::string> box = run_errand<std::string>(
          [](env::Env& env) { return find_box(env, control_paths(), "", kPatience); });
      if (!box) return std::unexpected(box.error());
      request_.box = std::move(*box);
    }
    const Attempt<Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    say(json_ ? json_text(*answer) : text(*answer));
    return kExitOk;
  }

 private:
  std::string text(const Json& answer) const {
    const std::string name = text_at(answer, "name");
    const double waited = answer.value("waited_ms", 0.0);
    const std::string where =
        back_ ? fmt::format("The layers of {} are back", name)
              : fmt::format("The layers of {} run in the box at {}, as namespace {}", name,
                            text_at(answer, "box"), number_at(answer, "nsid"));
    return fmt::format(
        "{}; requests waited {:.1f} ms. To have the same after a restart, serve it as\n"
        "  cairn drive serve '{}={}'\n",
        where, waited, name, drive::with_size_texts(text_at(answer, "stack")));
  }

  DriveClient client_;
  ControlRequest request_;
  bool back_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_drive_move(CLI::App& app) {
  return std::make_unique<MoveCommand>(app);
}

}  // namespace cairn::apps
