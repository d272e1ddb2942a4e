// SPDX-License-Identifier: Apache-2.0
// `cairn status` and `cairn down`: how a `cairn up` is, and its end.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/up/client.h"
#include "apps/up/commands.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

using server::Json;
using Ask = server::ControlRequest::Command;

// A server takes 10 s for requests in flight, and there is one after the other.
constexpr Duration kEndLimit = 60_s;

Attempt<Json> ask_once(const server::UpRunning& running, Ask command) {
  return run_errand<Json>(
      [&](env::Env& env) { return UpClient::ask(env, running.control, {.command = command}); });
}

class StatusCommand final : public Command {
 public:
  explicit StatusCommand(CLI::App& app) : client_(app) {
    add_switch(app, "--json", json_, "for programs");
    set_examples(app, {"cairn status", "cairn status --json"});
  }
  Attempt<int> run() override {
    const Attempt<server::UpRunning> running = client_.find();
    if (!running) return std::unexpected(running.error());
    const Attempt<Json> status = ask_once(*running, Ask::kUpStatus);
    if (!status) return std::unexpected(status.error());
    say(json_ ? config::json_text(*status) : up_status_text(*status));
    return server::text_at(*status, "health") == "failing" ? kExitFailed : kExitOk;
  }

 private:
  UpClient client_;
  bool json_ = false;
};

class DownCommand final : public Command {
 public:
  explicit DownCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn down", "cairn down --data /srv/cairn"});
  }
  Attempt<int> run() override {
    const Attempt<std::string> folder = client_.folder();
    if (!folder) return std::unexpected(folder.error());
    const Attempt<server::UpRunning> running = client_.find();
    if (!running) return std::unexpected(running.error());
    const Attempt<Json> asked = ask_once(*running, Ask::kUpDown);
    if (!asked) return std::unexpected(asked.error());
    const Attempt<void> ended = server::UpFolder::wait_until_free(*folder, kEndLimit);
    if (!ended) return std::unexpected(ended.error());
    say(fmt::format("it has ended; what it holds stays in {}: 'cairn up' starts it again\n",
                    *folder));
    return kExitOk;
  }

 private:
  UpClient client_;
};

}  // namespace

std::unique_ptr<Command> make_up_status(CLI::App& app) {
  return std::make_unique<StatusCommand>(app);
}
std::unique_ptr<Command> make_up_down(CLI::App& app) { return std::make_unique<DownCommand>(app); }

}  // namespace cairn::apps
