// SPDX-License-Identifier: Apache-2.0
// Client: requests to one HTTP server, over a few persistent connections.
//
// Each attempt has a deadline. Attempts that may have failed by a fault of the network, or because
// the server is busy or broken for a moment (429, 500, 502, 503, 504), are retried after a pause
// that doubles, unless the request forbids it. A change that was sent is not cancelled by its
// token: its caller could not know when the server stops carrying it out. If its deadline ends it,
// the outcome says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "rest/connection.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rest {

struct ClientOptions {
  env::Address server;
  std::string host;         // for the Host field
  size_t connections = 8;   // at most, at once
  Duration timeout = 10_s;  // of one attempt
  uint32_t retries = 3;     // after the first attempt
};

struct Outcome {
  Result<HttpAnswer> answer;  // to the last attempt
  // An attempt was sent and got no answer, or an inconclusive one: the server may have carried it
  // out, or may still do so.
  bool was_unanswered = false;
  // Such an attempt ended here (its deadline), or at a proxy (502, 504), and not because the server
  // closed the connection: it is likely to be still in progress.
  bool was_given_up = false;
};

// One core. Destroyed when no request is in flight.
class Client {
 public:
  struct Counters {
    uint64_t requests = 0;  // attempts
    uint64_t retries = 0;
    uint64_t connects = 0;
  };

  Client(env::Env& env, ClientOptions options)
      : env_(env), options_(std::move(options)), free_(options_.connections) {}

  // The answer, whatever its status. Errors as Connection::exchange, and those of connecting;
  // kTimedOut: no attempt was answered in time.
  task::Task<Result<HttpAnswer>> send(const HttpRequest& request, task::CancelToken token = {});
  // The same, and whether failed attempts may have been carried out.
  task::Task<Outcome> send_change(const HttpRequest& request, task::CancelToken token = {});

  const Counters& counters() const { return counters_; }
  // Why the last attempt that has ended was not answered; none: it was, or nothing was asked.
  const std::optional<Error>& unanswered() const { return unanswered_; }

 private:
  struct Attempt {
    Result<HttpAnswer> answer;
    bool was_stale = false;  // a kept connection had ended meanwhile: no attempt at all
    bool was_sent = false;
  };
  task::Task<Attempt> attempt(const HttpRequest& request, task::CancelToken token);
  task::Task<Result<std::unique_ptr<Connection>>> connect(task::CancelToken token);

  env::Env& env_;
  ClientOptions options_;
  task::Semaphore free_;
  std::vector<std::unique_ptr<Connection>> idle_;
  Counters counters_;
  std::optional<Error> unanswered_;
};

}  // namespace cairn::rest
