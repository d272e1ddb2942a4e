// SPDX-License-Identifier: Apache-2.0
// `cairn drive move`: a drive that is served, its layers in another process.
#include <fmt/format.h>

#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/serve/client.h"
#include "drive/size_text.h"
#include "server/control/control_path.h"

namespace cairn::apps {

namespace {

class MoveCommand final : public Command {
 public:
  explicit MoveCommand(CLI::App& app) : client_(app) {
    required(add_text(app, "NAME", request_.drive, "the drive"));
    add_value(app, "--to PATH",
              "the control socket of the box; without it the only other server here",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<std::string> path = server::check_control_path(text);
                if (!path) return std::unexpected(path.error());
                request_.box = std::move(*path);
                return {};
              });
    add_text(app, "--via URI", request_.via, "how the box is reached, when not as it says itself");
    add_switch(app, "--back", back_, "from the box to who serves the drive");
    request_.command = server::ControlRequest::Command::kDriveMove;
    set_examples(app, {"cairn drive move safe", "cairn drive move safe --to /run/card/box.sock",
                       "cairn drive move safe --back"});
  }

  Attempt<int> run() override {
    if (back_ && !(request_.box.empty() && request_.via.empty())) {
      return refuse("a drive comes back from where it is: leave out --to and --via");
    }
    if (!back_ && request_.box.empty()) {
      Attempt<std::string> box = client_.find_another(request_.drive);
      if (!box) return std::unexpected(box.error());
      request_.box = std::move(*box);
    }
    const Attempt<server::Json> answer = client_.ask(request_);
    if (!answer) return std::unexpected(answer.error());
    say(client_.json() ? ServerClient::json_text(*answer) : text(*answer));
    return kExitOk;
  }

 private:
  std::string text(const server::Json& answer) const {
    const std::string name = server::text_at(answer, "name");
    const double waited = answer.value("waited_ms", 0.0);
    const std::string where =
        back_ ? fmt::format("The layers of {} are back", name)
              : fmt::format("The layers of {} run in the box at {}, as namespace {}", name,
                            server::text_at(answer, "box"), server::number_at(answer, "nsid"));
    return fmt::format(
        "{}; requests waited {:.1f} ms. To have the same after a restart, serve it as\n"
        "  cairn serve '{}={}'\n",
        where, waited, name, drive::with_size_texts(server::text_at(answer, "stack")));
  }

  ServerClient client_;
  server::ControlRequest request_;
  bool back_ = false;
};

}  // namespace

std::unique_ptr<Command> make_drive_move(CLI::App& app) {
  return std::make_unique<MoveCommand>(app);
}

}  // namespace cairn::apps
