// SPDX-License-Identifier: Apache-2.0
#include "world/sim/testing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/io.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/gate.h"

namespace cairn::sim {

namespace {

using env::Env;
using task::Task;

Task<void> echo_one(Env& env, std::unique_ptr<env::Stream> stream) {
  while (true) {
    const Result<env::Chunk> chunk = co_await stream->receive(env.stop_token());
    if (!chunk || chunk->empty()) co_return;
    const Result<void> written = co_await stream->write(chunk->bytes(), env.stop_token());
    if (!written) co_return;
  }
}

Task<void> serve(Env& env, uint16_t port) {
  Result<std::unique_ptr<env::Listener>> listener = env.listen(env::Address::ip4(0, 0, 0, 0, port));
  if (!listener) co_return;
  task::Gate gate;
  while (true) {
    Result<env::Connection> connection = co_await (*listener)->accept(env.stop_token());
    if (connection) {
      gate.spawn(echo_one(env, env.open(std::move(*connection))));
    } else if (connection.error() == Errc::kLimit) {
      const Result<void> waited = co_await task::sleep_for(env, 1_ms, env.stop_token());
      if (!waited) break;
    } else {
      break;
    }
  }
  co_await gate.close();
}

Task<Result<void>> echo_round(Env& env, env::Stream& stream, MutableBytes message,
                              MutableBytes answer, Duration limit) {
  task::Deadline deadline(env, env.now() + limit, env.stop_token());
  const Result<void> written = co_await stream.write(message, deadline.token());
  if (!written) co_return written;
  const Result<void> got = co_await env::read_exactly(stream, answer, deadline.token());
  co_return got;
}

// Rounds on one connection until an error, or until all are done.
Task<void> talk(Env& env, env::Stream& stream, const EchoOptions& options, EchoStats& stats) {
  std::vector<std::byte> message(options.size);
  std::vector<std::byte> answer(options.size);
  env.rng().fill(message);
  while (stats.rounds < options.rounds) {
    env.rng().fill(MutableBytes(message).first(std::min<size_t>(8, message.size())));
    const Result<void> round =
        co_await echo_round(env, stream, message, answer, options.round_limit);
    if (!round) {
      ++stats.errors;
      co_return;
    }
    if (std::memcmp(message.data(), answer.data(), message.size()) != 0) ++stats.mismatches;
    ++stats.rounds;
  }
}

Task<void> run_client(Env& env, env::Address server, EchoOptions options, EchoStats& stats) {
  while (stats.rounds < options.rounds && !env.stop_token().requested()) {
    Result<std::unique_ptr<env::Stream>> stream = fail(Errc::kUnreachable, "not tried yet");
    {
      task::Deadline deadline(env, env.now() + options.round_limit, env.stop_token());
      stream = co_await env::connect_stream(env, server, {}, deadline.token());
    }
    if (stream) {
      co_await talk(env, **stream, options, stats);
    } else {
      ++stats.errors;
    }
    stream = fail(Errc::kClosed, "done");
    if (stats.rounds == options.rounds) break;
    const Result<void> slept = co_await task::sleep_for(env, options.pause, env.stop_token());
    if (!slept) break;
  }
}

}  // namespace

env::Program echo_server(uint16_t port) {
  return [port](Env& env) { return serve(env, port); };
}

env::Program echo_client(env::Address server, EchoOptions options, EchoStats& stats) {
  return [server, options, &stats](Env& env) { return run_client(env, server, options, stats); };
}

}  // namespace cairn::sim
