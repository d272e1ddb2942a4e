// SPDX-License-Identifier: Apache-2.0
// `cairn demo kill-drive`: a drive of a running `cairn up` fails, and what becomes of it.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "apps/up/client.h"
#include "apps/up/commands.h"
#include "apps/up/status_text.h"
#include "base/words.h"
#include "task/deadline.h"

namespace cairn::apps {

namespace {

using server::Json;
using Ask = server::ControlRequest::Command;

constexpr Duration kLook = 200_ms;
// A line at least so often while nothing changes.
constexpr Duration kLineEvery = 5_s;

class KillDriveCommand final : public Command {
 public:
  explicit KillDriveCommand(CLI::App& app) : client_(app) {
    required(add_argument(app, "DRIVE", "the drive that fails, as 'cairn status' calls it: d2",
                          [this](const std::string& text) -> Attempt<void> {
                            drive_ = text;
                            return {};
                          }));
    add_number(app, "--timeout SECONDS", timeout_s_, 1, 86400,
               "how long to follow what becomes of it (600)");
    add_switch(app, "--json", json_, "each line as JSON, for programs");
    set_examples(app, {"cairn demo kill-drive d2"});
  }

  Attempt<int> run() override {
    const Attempt<server::UpRunning> running = client_.find();
    if (!running) return std::unexpected(running.error());
    control_ = running->control;
    return run_errand<int>([this](env::Env& env) { return kill_and_follow(env); });
  }

 private:
  task::Task<Attempt<int>> kill_and_follow(env::Env& env) {
    // Of what lacks copies already it could take the last one.
    Attempt<Json> status = co_await UpClient::ask(env, control_, {.command = Ask::kUpStatus});
    if (!status) co_return std::unexpected(status.error());
    if (server::text_at(*status, "health") != "ok") {
      co_return refuse(
          fmt::format("cairn up is {}, and another loss could be one too many: wait until 'cairn "
                      "status' says ok",
                      server::text_at(*status, "health")));
    }
    const Time began = env.now();
    const Attempt<Json> failed =
        co_await UpClient::ask(env, control_, {.command = Ask::kUpFail, .drive = drive_});
    if (!failed) co_return std::unexpected(failed.error());
    tell(env.now() - began, fmt::format("drive {} has failed; reads and writes go on", drive_));
    co_return co_await follow(env, began);
  }

  task::Task<Attempt<int>> follow(env::Env& env, Time began) {
    const Time until = began + Duration::from_seconds(timeout_s_);
    std::vector<std::string> told;
    Time told_at = env.now();
    for (;;) {
      const Attempt<Json> status =
          co_await UpClient::ask(env, control_, {.command = Ask::kUpStatus});
      if (!status) co_return std::unexpected(status.error());
      const Duration passed = env.now() - began;
      if (server::text_at(*status, "health") == "ok") {
        tell(passed, "ok: everything has all its copies again");
        co_return kExitOk;
      }
      std::vector<std::string> lines = lines_of(*status);
      const bool is_due = env.now() - told_at >= kLineEvery;
      if (lines != told || is_due) {
        for (const Json& reason : server::list_at(*status, "reasons")) {
          tell(passed, up_reason_text(reason));
        }
        told = std::move(lines);
        told_at = env.now();
      }
      if (env.now() >= until) {
        co_return refuse(
            fmt::format("it is {} still after {} s; it goes on by itself, and 'cairn status' says "
                        "how far it is",
                        server::text_at(*status, "health"), timeout_s_));
      }
      const Result<void> slept = co_await task::sleep_for(env, kLook, env.stop_token());
      if (!slept) co_return refuse("it goes on by itself: 'cairn status' says how far it is");
    }
  }
  // What is worth another line when it changes.
  static std::vector<std::string> lines_of(const Json& status) {
    std::vector<std::string> lines;
    for (const Json& reason : server::list_at(status, "reasons")) {
      lines.push_back(fmt::format(
          "{} {} {} {}", server::text_at(reason, "code"), server::text_at(reason, "drive"),
          server::text_at(reason, "volume"), server::number_at(reason, "percent")));
    }
    return lines;
  }
  void tell(Duration passed, const std::string& line) const {
    if (json_) {
      const Json json = {{"schema_version", 1}, {"passed_s", passed.seconds()}, {"what", line}};
      say(json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n");
      finish_output();
      return;
    }
    say(fmt::format("{:6.1f} s  {}\n", passed.seconds(), line));
    finish_output();
  }

  UpClient client_;
  std::string drive_;
  std::string control_;
  double timeout_s_ = 600;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_demo_kill_drive(CLI::App& app) {
  return std::make_unique<KillDriveCommand>(app);
}

}  // namespace cairn::apps
