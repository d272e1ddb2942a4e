// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/words.h"
#include "env/io.h"
#include "server/control/control_line.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

// Nobody listens there, or who did is just ending.
bool is_gone(const Error& error) {
  return error == Errc::kUnreachable || error == Errc::kReset || error == Errc::kClosed;
}

Problem no_answer(const std::string& path, const Error& error) {
  const std::string socket = in_quotes(path);
  if (is_gone(error)) {
    return {
        fmt::format("no server listens at {}: start one with 'cairn serve STACK', or name its "
                    "socket with --control PATH",
                    socket)};
  }
  if (error == Errc::kDenied) {
    return {fmt::format("the server at {} belongs to another user: ask as that user", socket)};
  }
  if (error == Errc::kTimedOut) {
    return {
        fmt::format("the server at {} has not answered in time; it may still do what it was asked: "
                    "look with 'cairn drive show', or wait longer with --timeout",
                    socket)};
  }
  return {fmt::format("the server at {} cannot be asked: {}: look whether it still runs", socket,
                      error.text())};
}

bool is_meant(const Json& list, const Wanted& wanted) {
  const std::vector<Json> nqns = list_at(list, "subsystems");
  const std::vector<Json> drives = list_at(list, "drives");
  const bool has_nqn = wanted.nqn.empty() || std::ranges::any_of(nqns, [&wanted](const Json& each) {
                         return each == wanted.nqn;
                       });
  const bool has_drive =
      wanted.drive.empty() || std::ranges::any_of(drives, [&wanted](const Json& each) {
        return text_at(each, "name") == wanted.drive;
      });
  return has_nqn && has_drive;
}

Problem nobody_serves(const Wanted& wanted) {
  if (!wanted.drive.empty()) {
    return {fmt::format("no drive {} of this user is served here: see what 'cairn drive list' says",
                        in_quotes(wanted.drive))};
  }
  if (wanted.nqn.empty()) {
    return {
        "no server of this user runs here: start one with 'cairn serve STACK', or name its "
        "socket with --control PATH"};
  }
  return {fmt::format(
      "no server of this user serves {}: see what 'cairn drive status' says, or name the "
      "server's socket with --control PATH",
      in_quotes(wanted.nqn))};
}

}  // namespace

task::Task<Result<std::string>> exchange_lines(env::Env& env, std::string path, std::string line,
                                               Duration timeout) {
  const env::Address at{.family = env::Address::Family::kLocal, .path = std::move(path)};
  task::Deadline deadline(env, env.now() + timeout, env.stop_token());
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env, at, {}, deadline.token());
  if (!stream) co_return fail(stream.error());
  Result<void> written =
      co_await (*stream)->write(std::as_bytes(std::span(line)), deadline.token());
  if (!written) co_return fail(written.error());
  LineReader reader(**stream, kControlReplyMax);
  Result<std::string> reply = co_await reader.next(deadline.token());
  co_return reply;
}

task::Task<Attempt<Json>> ask_server(env::Env& env, std::string path, ControlRequest request,
                                     Duration timeout) {
  Result<std::string> reply =
      co_await exchange_lines(env, path, encode_request(request) + "\n", timeout);
  if (!reply) co_return std::unexpected(no_answer(path, reply.error()));
  co_return decode_reply(*reply);
}

task::Task<Attempt<std::vector<std::string>>> find_servers(env::Env& env,
                                                           std::vector<std::string> paths,
                                                           Wanted wanted, Duration timeout) {
  std::vector<std::string> found;
  const std::string question =
      encode_request({.command = ControlRequest::Command::kDriveList}) + "\n";
  for (const std::string& path : paths) {
    Result<std::string> reply = co_await exchange_lines(env, path, question, timeout);
    if (!reply && is_gone(reply.error())) continue;
    if (!reply) co_return std::unexpected(no_answer(path, reply.error()));
    const Attempt<Json> list = decode_reply(*reply);
    if (!list) co_return refuse(fmt::format("{}: {}", in_quotes(path), list.error().text));
    if (is_meant(*list, wanted)) found.push_back(path);
  }
  if (found.empty()) co_return std::unexpected(nobody_serves(wanted));
  co_return found;
}

task::Task<Attempt<std::string>> find_server(env::Env& env, std::vector<std::string> paths,
                                             Wanted wanted, Duration timeout) {
  Attempt<std::vector<std::string>> found =
      co_await find_servers(env, std::move(paths), std::move(wanted), timeout);
  if (!found) co_return std::unexpected(found.error());
  if (found->size() == 1) co_return found->front();
  co_return refuse(fmt::format("{} servers could be meant: say which with --control PATH ({})",
                               found->size(), comma_list(*found)));
}

}  // namespace cairn::server
