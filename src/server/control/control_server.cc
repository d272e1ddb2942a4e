// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_server.h"

#include <fmt/format.h>

#include <utility>

#include "base/words.h"
#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/control/control_line.h"
#include "task/deadline.h"

namespace cairn::server {

Result<void> ControlServer::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at);
  if (!listener) return fail(listener.error());
  listener_ = std::move(*listener);
  gate_.spawn(accept_loop());
  return {};
}

task::Task<void> ControlServer::close() {
  stop_.request();
  co_await gate_.close();
  listener_.reset();
}

task::Task<void> ControlServer::accept_loop() {
  while (!stop_.requested()) {
    Result<env::Connection> connection = co_await listener_->accept(stop_.token());
    if (connection) {
      if (connections_ < limits_.connections_max)
        gate_.spawn(serve(env_.open(std::move(*connection))));
    } else if (connection.error() == Errc::kLimit) {
      const Result<void> slept = co_await task::sleep_for(env_, 50_ms, stop_.token());
      if (!slept) co_return;
    } else {
      co_return;
    }
  }
}

task::Task<void> ControlServer::serve(std::unique_ptr<env::Stream> stream) {
  ++connections_;
  LineReader reader(*stream, kControlRequestMax);
  for (;;) {
    task::Deadline deadline(env_, env_.now() + limits_.idle_timeout, stop_.token());
    Result<std::string> line = co_await reader.next(deadline.token());
    if (!line) break;
    Result<void> answered = co_await answer(*stream, *line);
    if (!answered) break;
  }
  --connections_;
}

task::Task<Result<void>> ControlServer::answer(env::Stream& stream, std::string_view line) {
  Attempt<ControlRequest> request = decode_request(line);
  Attempt<Json> result;
  if (request) {
    result = co_await execute_(std::move(*request));
  } else {
    result = std::unexpected(request.error());
  }
  const std::string reply = encode_reply(result);
  // Also when we are to end: the change is made, and whoever asked for it should know.
  task::Deadline deadline(env_, env_.now() + limits_.idle_timeout);
  Result<void> written = co_await stream.write(std::as_bytes(std::span(reply)), deadline.token());
  co_return written;
}

namespace {

Problem cannot_control(const std::string& path, const Error& error) {
  if (error == Errc::kExists) {
    return {
        fmt::format("another server{} listens at the control socket {}: end that, or name "
                    "another socket with --control PATH (or --control off)",
                    listener_text(path), in_quotes(path))};
  }
  return {fmt::format("the control socket {} cannot be made: {}: name another with --control PATH",
                      in_quotes(path), error.text())};
}

}  // namespace

task::Task<Attempt<void>> listen_at(env::Env& env, ControlServer& control, std::string path) {
  const env::Address at{.family = env::Address::Family::kLocal, .path = path};
  Result<void> listening;
  HolderRetry retry(env);
  for (bool again = true; again;) {
    listening = control.listen(at);
    again = co_await retry.after(listening);
  }
  if (!listening) co_return std::unexpected(cannot_control(path, listening.error()));
  co_return Attempt<void>();
}

}  // namespace cairn::server
