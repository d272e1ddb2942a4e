// SPDX-License-Identifier: Apache-2.0
// `cairn status` and `cairn down`: how a `cairn up` is, and its end.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/up/client.h"
#include "apps/up/commands.h"
#include "apps/up/status_text.h"
#include "config/json_text.h"
#include "task/deadline.h"

namespace cairn::apps {

namespace {

using server::Json;
using Ask = server::ControlRequest::Command;

// A server takes 10 s for requests in flight, and there is one after the other.
constexpr Duration kEndLimit = 60_s;
constexpr Duration kEvery = 1_s;  // with --watch

Attempt<Json> ask_once(const server::UpRunning& running, Ask command) {
  return run_errand<Json>(
      [&](env::Env& env) { return UpClient::ask(env, running.control, {.command = command}); });
}

class StatusCommand final : public Command {
 public:
  explicit StatusCommand(CLI::App& app) : client_(app) {
    add_switch(app, "--watch", watch_, "again and again, until Ctrl-C");
    add_switch(app, "--json", json_, "for programs");
    set_examples(app, {"cairn status", "cairn status --watch", "cairn status --json"});
  }
  Attempt<int> run() override {
    const Attempt<server::UpRunning> running = client_.find();
    if (!running) return std::unexpected(running.error());
    return run_errand<int>([&](env::Env& env) { return show(env, running->control); });
  }

 private:
  task::Task<Attempt<int>> show(env::Env& env, std::string control) {
    for (;;) {
      const Attempt<Json> status =
          co_await UpClient::ask(env, control, {.command = Ask::kUpStatus});
      if (!status && watch_ && env.stop_token().requested()) co_return kExitOk;
      if (!status) co_return std::unexpected(status.error());
      print(*status);
      const bool fails = server::text_at(*status, "health") == "failing";
      if (!watch_) co_return fails ? kExitFailed : kExitOk;
      finish_output();
      const Result<void> slept = co_await task::sleep_for(env, kEvery, env.stop_token());
      if (!slept) co_return kExitOk;
    }
  }
  void print(const Json& status) const {
    if (json_) {
      say(watch_ ? status.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"
                 : config::json_text(status));
      return;
    }
    if (watch_ && ::isatty(STDOUT_FILENO) == 1) say("\x1b[H\x1b[2J");
    say(up_status_text(status));
    if (watch_ && ::isatty(STDOUT_FILENO) != 1) say("\n");
  }

  UpClient client_;
  bool watch_ = false;
  bool json_ = false;
};

class DownCommand final : public Command {
 public:
  explicit DownCommand(CLI::App& app) : client_(app) {
    add_switch(app, "--json", json_, "for programs");
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
    if (json_) {
      say(config::json_text({{"schema_version", 1}, {"folder", *folder}, {"ended", true}}));
      return kExitOk;
    }
    say(fmt::format("it has ended; what it holds stays in {}: 'cairn up' starts it again\n",
                    *folder));
    return kExitOk;
  }

 private:
  UpClient client_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_up_status(CLI::App& app) {
  return std::make_unique<StatusCommand>(app);
}
std::unique_ptr<Command> make_up_down(CLI::App& app) { return std::make_unique<DownCommand>(app); }

}  // namespace cairn::apps
