// SPDX-License-Identifier: Apache-2.0
#include "examples/echo.h"

#include <algorithm>
#include <utility>

#include "base/buffer.h"
#include "base/bytes.h"
#include "env/io.h"
#include "task/deadline.h"

namespace cairn::examples {

using env::Chunk;
using env::Connection;
using env::Env;
using env::Listener;
using env::Stream;
using task::CancelSource;
using task::CancelToken;
using task::Deadline;
using task::Task;
using task::Units;

namespace {

// How long to leave a listener alone that has run out of descriptors.
constexpr Duration kAcceptPause = 10_ms;

}  // namespace

Result<std::unique_ptr<EchoServer>> EchoServer::make(Env& env, const EchoServerOptions& options) {
  Result<std::unique_ptr<Listener>> listener = env.listen(options.at);
  if (!listener) return fail(listener.error());
  return std::unique_ptr<EchoServer>(
      new EchoServer(env, std::move(*listener), options.connections_max));
}

Task<Result<void>> EchoServer::run(CancelToken stop) {
  // Connections get a token of their own: they also end when accepting fails.
  CancelSource connections(stop);
  Result<void> result;
  while (true) {
    result = co_await free_.acquire(1, stop);
    if (!result) break;
    Units place(free_, 1);
    Result<Connection> accepted = co_await listener_->accept(stop);
    if (accepted) {
      gate_.spawn(serve(std::move(*accepted), std::move(place), connections.token()));
      continue;
    }
    result = fail(accepted.error());
    if (accepted.error() != Errc::kLimit) break;
    result = co_await task::sleep_for(env_, kAcceptPause, stop);
    if (!result) break;
  }
  connections.request();
  co_await gate_.close();
  if (stop.requested()) co_return Result<void>{};
  co_return result;
}

Task<void> EchoServer::serve(Connection connection, [[maybe_unused]] Units place,
                             CancelToken stop) {
  const std::unique_ptr<Stream> stream = env_.open(std::move(connection));
  while (true) {
    // While the peer does not read, the write waits, the chunk is held and the peer is slowed down.
    const Result<Chunk> chunk = co_await stream->receive(stop);
    if (!chunk) co_return;
    if (chunk->empty()) break;
    const Result<void> written = co_await stream->write(chunk->bytes(), stop);
    if (!written) co_return;
    bytes_echoed_ += chunk->bytes().size();
  }
  // The peer has finished; so have we. Whether it still listens is its own affair.
  [[maybe_unused]] const Result<void> finished = stream->finish();
}

namespace {

Task<Result<void>> write_all(Stream& stream, Bytes message, CancelToken token) {
  const Result<void> written = co_await stream.write(message, token);
  co_return written;
}

// One message and its answer. Both directions run at once: a message may be larger than what the
// network holds, and then it only leaves while its beginning comes back.
Task<Result<void>> ask_once(Env& env, Stream& stream, Bytes message, MutableBytes answer,
                            Duration limit, CancelToken stop) {
  Deadline deadline(env, env.now() + limit, stop);
  Task<Result<void>> writing = write_all(stream, message, deadline.token());
  const Result<void> read = co_await env::read_exactly(stream, answer, deadline.token());
  const Result<void> written = co_await writing;
  if (!written) co_return fail(written.error());
  if (!read) co_return fail(read.error());
  if (!std::ranges::equal(answer, message)) {
    co_return fail(Errc::kCorrupt, "an answer that is not what was sent");
  }
  co_return Result<void>{};
}

// The messages of one connection, until all are answered or one fails.
Task<Result<void>> ask_on(Env& env, Stream& stream, const EchoClientOptions& options,
                          EchoReport& report, CancelToken stop) {
  const Result<Buffer> message = env.buffers().allocate(options.message_size);
  const Result<Buffer> answer = env.buffers().allocate(options.message_size);
  if (!message) co_return fail(message.error());
  if (!answer) co_return fail(answer.error());
  while (report.rounds < options.rounds) {
    // The number makes every message another, so that an old answer never passes for a new one.
    env.rng().fill(message->bytes());
    store(message->bytes(), report.rounds);
    const Result<void> asked = co_await ask_once(env, stream, message->bytes(), answer->bytes(),
                                                 options.round_limit, stop);
    if (!asked) co_return fail(asked.error());
    ++report.rounds;
    if (options.pause.ns == 0) continue;
    const Result<void> paused = co_await task::sleep_for(env, options.pause, stop);
    if (!paused) co_return fail(paused.error());
  }
  co_return stream.finish();
}

Task<Result<void>> connect_and_ask(Env& env, const EchoClientOptions& options, EchoReport& report,
                                   CancelToken stop) {
  Deadline deadline(env, env.now() + options.round_limit, stop);
  Result<std::unique_ptr<Stream>> stream =
      co_await env::connect_stream(env, options.server, {}, deadline.token());
  if (!stream) co_return fail(stream.error());
  ++report.connections;
  const Result<void> asked = co_await ask_on(env, **stream, options, report, stop);
  co_return asked;
}

}  // namespace

Task<Result<void>> ask_echo(Env& env, EchoClientOptions options, EchoReport& report,
                            CancelToken stop) {
  if (options.message_size < sizeof(uint64_t) || options.message_size > env.buffers().size_max()) {
    co_return fail(Errc::kInvalid, "size of an echo message");
  }
  while (report.rounds < options.rounds) {
    const Result<void> asked = co_await connect_and_ask(env, options, report, stop);
    if (stop.requested()) co_return fail(stop.error());
    if (asked || report.rounds == options.rounds) break;
    if (asked.error() == Errc::kLimit) co_return fail(asked.error());
    ++report.failures;
    if (asked.error() == Errc::kCorrupt) ++report.corruptions;
    const Result<void> slept = co_await task::sleep_for(env, options.retry_delay, stop);
    if (!slept) co_return fail(slept.error());
  }
  co_return Result<void>{};
}

}  // namespace cairn::examples
