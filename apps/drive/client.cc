// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/common/command.h"
#include "apps/common/errand.h"
#include "base/words.h"
#include "server/control/control_client.h"
#include "server/control/control_path.h"

namespace cairn::apps {

namespace {

using Verb = server::ControlRequest::Command;

Problem no_answer(const std::string& path, const Error& error) {
  const std::string socket = in_quotes(path);
  if (server::is_gone(error)) {
    return {
        fmt::format("nobody serves drives at {}: start with 'cairn drive serve STACK', or name "
                    "the socket with --control PATH",
                    socket)};
  }
  if (error == Errc::kDenied) {
    return {fmt::format("who serves drives at {} is another user: ask as that user", socket)};
  }
  if (error == Errc::kTimedOut) {
    return {
        fmt::format("who serves drives at {} has not answered in time, and may still do what "
                    "was asked: look with 'cairn drive show', or wait longer with --timeout",
                    socket)};
  }
  return {fmt::format("who serves drives at {} cannot be asked: {}: look whether it still runs",
                      socket, error.text())};
}

bool serves(const server::Json& list, const std::string& drive) {
  return std::ranges::any_of(server::list_at(list, "drives"), [&drive](const server::Json& each) {
    return drive.empty() || server::text_at(each, "name") == drive;
  });
}

}  // namespace

DriveClient::DriveClient(CLI::App& app) {
  add_value(app, "--control PATH", "the control socket, when several processes serve such a drive",
            [this](const std::string& text) -> Attempt<void> {
              Attempt<std::string> path = server::check_control_path(text);
              if (!path) return std::unexpected(path.error());
              control_ = std::move(*path);
              return {};
            });
  add_number(app, "--timeout SECONDS", timeout_s_, 0.1, 86400, "how long to wait (60)");
}

task::Task<Attempt<server::Json>> DriveClient::exchange(
    env::Env& env, std::string path, const server::ControlRequest& request) const {
  Result<std::string> reply = co_await server::exchange_lines(
      env, path, server::encode_request(request) + "\n", Duration::from_seconds(timeout_s_));
  if (!reply) co_return std::unexpected(no_answer(path, reply.error()));
  co_return server::decode_reply(*reply);
}

task::Task<Attempt<std::vector<std::string>>> DriveClient::find(env::Env& env,
                                                                std::string drive) const {
  if (!control_.empty()) co_return std::vector<std::string>{control_};
  std::vector<std::string> found;
  const std::string question = server::encode_request({.command = Verb::kDriveList}) + "\n";
  for (const std::string& path : server::drive_control_paths()) {
    Result<std::string> reply =
        co_await server::exchange_lines(env, path, question, Duration::from_seconds(timeout_s_));
    if (!reply && server::is_gone(reply.error())) continue;
    if (!reply) co_return std::unexpected(no_answer(path, reply.error()));
    const Attempt<server::Json> list = server::decode_reply(*reply);
    if (!list) co_return refuse(fmt::format("{}: {}", in_quotes(path), list.error().text));
    if (serves(*list, drive)) found.push_back(path);
  }
  if (!found.empty()) co_return found;
  if (drive.empty()) {
    co_return refuse(
        "no drive of this user is served here: start with 'cairn drive serve STACK', or name the "
        "control socket with --control PATH");
  }
  co_return refuse(
      fmt::format("no drive {} of this user is served here: see what 'cairn drive list' says",
                  in_quotes(drive)));
}

task::Task<Attempt<server::Json>> DriveClient::ask_one(
    env::Env& env, const server::ControlRequest& request) const {
  const Attempt<std::vector<std::string>> paths = co_await find(env, request.drive);
  if (!paths) co_return std::unexpected(paths.error());
  if (paths->size() > 1) {
    co_return refuse(
        fmt::format("{} processes serve such a drive: say which with --control PATH "
                    "({})",
                    paths->size(), comma_list(*paths)));
  }
  Attempt<server::Json> answer = co_await exchange(env, paths->front(), request);
  co_return answer;
}

Attempt<server::Json> DriveClient::ask(const server::ControlRequest& request) const {
  return run_errand<server::Json>([&](env::Env& env) { return ask_one(env, request); });
}

task::Task<Attempt<server::Json>> DriveClient::ask_all(
    env::Env& env, const server::ControlRequest& request) const {
  const Attempt<std::vector<std::string>> paths = co_await find(env, request.drive);
  if (!paths) co_return std::unexpected(paths.error());
  server::Json drives = server::Json::array();
  for (const std::string& path : *paths) {
    const Attempt<server::Json> answer = co_await exchange(env, path, request);
    if (!answer) co_return std::unexpected(answer.error());
    for (server::Json& drive : server::list_at(*answer, "drives")) {
      drive["control"] = path;
      drives.push_back(std::move(drive));
    }
  }
  co_return server::Json{{"schema_version", 1}, {"drives", std::move(drives)}};
}

}  // namespace cairn::apps
