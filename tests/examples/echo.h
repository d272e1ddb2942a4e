// SPDX-License-Identifier: Apache-2.0
// Echo: a small server and client written only against env/, to be copied when writing a new one.
//
// What to copy: a limit on everything (connections, message size, time), a Gate for tasks nobody
// awaits, tokens that stop every wait, errors that are retried where a retry makes sense, and bytes
// from the network that are checked before they are believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::examples {

struct EchoServerOptions {
  env::Address at;
  size_t connections_max = 64;  // more wait in the listener's backlog
};

// Sends back whatever arrives, on any number of connections. One core.
class EchoServer {
 public:
  // Errors as Env::listen. `env` must outlive the server.
  static Result<std::unique_ptr<EchoServer>> make(env::Env& env, const EchoServerOptions& options);

  env::Address local() const { return listener_->local(); }

  // Serves until `stop` is requested, then ends all connections and waits for them. Once. An error
  // means that nothing can be accepted any more; being stopped is none.
  task::Task<Result<void>> run(task::CancelToken stop);

  uint64_t bytes_echoed() const { return bytes_echoed_; }

 private:
  EchoServer(env::Env& env, std::unique_ptr<env::Listener> listener, size_t connections_max)
      : env_(env), listener_(std::move(listener)), free_(connections_max) {}
  // `place` goes back when the connection has ended.
  task::Task<void> serve(env::Connection connection, task::Units place, task::CancelToken stop);

  env::Env& env_;
  std::unique_ptr<env::Listener> listener_;
  task::Semaphore free_;  // connections that may still be opened
  task::Gate gate_;
  uint64_t bytes_echoed_ = 0;
};

struct EchoClientOptions {
  env::Address server;
  uint64_t rounds = 1;
  size_t message_size = 4096;  // 8 at least, a buffer of the pool at most
  Duration round_limit = 1_s;  // then the connection is given up
  Duration retry_delay = 10_ms;
  Duration pause;  // between rounds
};

// What a client has seen so far; rounds that failed were asked again on a new connection.
struct EchoReport {
  uint64_t rounds = 0;       // answered with exactly the message sent
  uint64_t connections = 0;  // made
  uint64_t failures = 0;     // connects or rounds that failed
  uint64_t corruptions = 0;  // of those: answers that were not the message
};

// Sends `rounds` random messages, one after the other, and returns when each was answered with
// itself. `report` is kept up to date and must outlive the task. kInvalid: message_size; kLimit: no
// buffers; kCancelled, kTimedOut: by `stop`. Everything else is retried for as long as `stop` lets
// it.
task::Task<Result<void>> ask_echo(env::Env& env, EchoClientOptions options, EchoReport& report,
                                  task::CancelToken stop);

}  // namespace cairn::examples
