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

Problem no_answer(const std::string& path, const Error& error) {
  const std::string socket = in_quotes(path);
  switch (error.code()) {
    case Errc::kUnreachable:
    case Errc::kReset:
    case Errc::kClosed:
      return {
          fmt::format("no box listens at {}: start one with 'cairn box', or name its socket "
                      "with --control PATH",
                      socket)};
    case Errc::kDenied:
      return {fmt::format("the box at {} belongs to another user: ask as that user", socket)};
    case Errc::kTimedOut:
      return {
          fmt::format("the box at {} has not answered in time; it may still do what it was "
                      "asked: look with 'cairn box status', or wait longer with --timeout",
                      socket)};
    default:
      return {fmt::format("the box at {} cannot be asked: {}: look whether it still runs", socket,
                          error.text())};
  }
}

bool serves(const Json& status, const std::string& nqn) {
  return std::ranges::any_of(list_at(status, "subsystems"),
                             [&nqn](const Json& each) { return text_at(each, "nqn") == nqn; });
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

bool is_gone(const Error& error) {
  return error == Errc::kUnreachable || error == Errc::kReset || error == Errc::kClosed;
}

task::Task<Attempt<Json>> ask_box(env::Env& env, std::string path, ControlRequest request,
                                  Duration timeout) {
  Result<std::string> reply =
      co_await exchange_lines(env, path, encode_request(request) + "\n", timeout);
  if (!reply) co_return std::unexpected(no_answer(path, reply.error()));
  co_return decode_reply(*reply);
}

task::Task<Attempt<std::vector<std::string>>> find_boxes(env::Env& env,
                                                         std::vector<std::string> paths,
                                                         std::string nqn, Duration timeout) {
  std::vector<std::string> found;
  const std::string question = encode_request({}) + "\n";
  for (const std::string& path : paths) {
    Result<std::string> reply = co_await exchange_lines(env, path, question, timeout);
    if (!reply && is_gone(reply.error())) continue;
    if (!reply) co_return std::unexpected(no_answer(path, reply.error()));
    const Attempt<Json> status = decode_reply(*reply);
    if (!status) co_return refuse(fmt::format("{}: {}", in_quotes(path), status.error().text));
    if (nqn.empty() || serves(*status, nqn)) found.push_back(path);
  }
  if (!found.empty()) co_return found;
  if (nqn.empty()) {
    co_return refuse(
        "no box of this user runs here: start one with 'cairn box', or name its "
        "socket with --control PATH");
  }
  co_return refuse(
      fmt::format("no box of this user serves {}: see what 'cairn box status' says, or "
                  "name the box's socket with --control PATH",
                  in_quotes(nqn)));
}

task::Task<Attempt<std::string>> find_box(env::Env& env, std::vector<std::string> paths,
                                          std::string nqn, Duration timeout) {
  Attempt<std::vector<std::string>> found =
      co_await find_boxes(env, std::move(paths), std::move(nqn), timeout);
  if (!found) co_return std::unexpected(found.error());
  if (found->size() == 1) co_return found->front();
  co_return refuse(fmt::format("{} boxes could be meant: say which with --control PATH ({})",
                               found->size(), comma_list(*found)));
}

}  // namespace cairn::server
