// SPDX-License-Identifier: Apache-2.0
#include "apps/serve/client.h"

#include <fmt/format.h>

#include "apps/common/command.h"
#include "apps/common/errand.h"
#include "apps/common/output.h"
#include "base/words.h"
#include "config/json_text.h"
#include "server/control/control_path.h"

namespace cairn::apps {

using server::ControlRequest;
using server::Json;

ServerClient::ServerClient(CLI::App& app) {
  add_value(app, "--control PATH", "the server's control socket, when several could be meant",
            [this](const std::string& text) -> Attempt<void> {
              Attempt<std::string> path = server::check_control_path(text);
              if (!path) return std::unexpected(path.error());
              control_ = std::move(*path);
              return {};
            });
  add_value(app, "--nqn NQN", "the subsystem, when there are several; finds the server too",
            [this](const std::string& text) -> Attempt<void> {
              nqn_ = text;
              return {};
            });
  add_number(app, "--timeout SECONDS", timeout_s_, 0.1, 86400, "how long to wait (60)");
  add_switch(app, "--json", json_, "print the answer as one JSON object");
}

// A drive that is to be added is nobody's yet.
server::Wanted ServerClient::wanted_by(const ControlRequest& request) const {
  const bool is_new = request.command == ControlRequest::Command::kDriveAdd;
  return {.nqn = nqn_, .drive = is_new ? "" : request.drive};
}

task::Task<Attempt<Json>> ServerClient::ask_one(env::Env& env, ControlRequest request) const {
  const Duration timeout = Duration::from_seconds(timeout_s_);
  std::string path = control_;
  if (path.empty()) {
    Attempt<std::string> found =
        co_await server::find_server(env, server::control_paths(), wanted_by(request), timeout);
    if (!found) co_return std::unexpected(found.error());
    path = std::move(*found);
  }
  Attempt<Json> answer = co_await server::ask_server(env, path, std::move(request), timeout);
  co_return answer;
}

task::Task<Attempt<ServerClient::Answers>> ServerClient::ask_each(env::Env& env,
                                                                  ControlRequest request) const {
  const Duration timeout = Duration::from_seconds(timeout_s_);
  std::vector<std::string> paths = {control_};
  if (control_.empty()) {
    Attempt<std::vector<std::string>> found =
        co_await server::find_servers(env, server::control_paths(), wanted_by(request), timeout);
    if (!found) co_return std::unexpected(found.error());
    paths = std::move(*found);
  }
  Answers answers;
  for (const std::string& path : paths) {
    Attempt<Json> answer = co_await server::ask_server(env, path, request, timeout);
    if (!answer) co_return std::unexpected(answer.error());
    answers.emplace_back(path, std::move(*answer));
  }
  co_return answers;
}

Attempt<Json> ServerClient::ask(ControlRequest request) const {
  request.nqn = nqn_;
  return run_errand<Json>([&](env::Env& env) { return ask_one(env, request); });
}

Attempt<ServerClient::Answers> ServerClient::ask_all(ControlRequest request) const {
  request.nqn = nqn_;
  return run_errand<Answers>([&](env::Env& env) { return ask_each(env, request); });
}

task::Task<Attempt<Json>> ServerClient::ask_for_drives(env::Env& env,
                                                       ControlRequest request) const {
  request.nqn = nqn_;
  const Attempt<Answers> answers = co_await ask_each(env, std::move(request));
  if (!answers) co_return std::unexpected(answers.error());
  Json drives = Json::array();
  for (const auto& [path, answer] : *answers) {
    for (Json& drive : server::list_at(answer, "drives")) {
      drive["control"] = path;
      drives.push_back(std::move(drive));
    }
  }
  co_return Json{{"schema_version", 1}, {"drives", std::move(drives)}};
}

task::Task<Attempt<std::string>> ServerClient::find_another_in(env::Env& env,
                                                               std::string drive) const {
  const Duration timeout = Duration::from_seconds(timeout_s_);
  std::vector<std::string> all = server::control_paths();
  std::string mine = control_;
  if (mine.empty()) {
    Attempt<std::string> found =
        co_await server::find_server(env, all, {.nqn = nqn_, .drive = drive}, timeout);
    if (!found) co_return found;
    mine = std::move(*found);
  }
  std::erase(all, mine);
  const Attempt<std::vector<std::string>> others =
      co_await server::find_servers(env, std::move(all), {}, timeout);
  if (!others) {
    co_return refuse(
        "no other server of this user runs here: start one with 'cairn serve', or name its control "
        "socket with --to PATH");
  }
  if (others->size() == 1) co_return others->front();
  co_return refuse(fmt::format("{} other servers could be meant: say which with --to PATH ({})",
                               others->size(), comma_list(*others)));
}

Attempt<std::string> ServerClient::find_another(const std::string& drive) const {
  return run_errand<std::string>([&](env::Env& env) { return find_another_in(env, drive); });
}

std::string ServerClient::json_text(const Json& answer) {
  Json json = {{"schema_version", 1}};
  json.update(answer);
  return config::json_text(json);
}

void ServerClient::print(const Json& answer, std::string_view text) const {
  say(json_ ? json_text(answer) : text);
}

}  // namespace cairn::apps
