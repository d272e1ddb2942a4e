// SPDX-License-Identifier: Apache-2.0
// Server: a Store for RemoteStores in other processes, by the protocol of meta/wire_format.h.
//
// Whatever a client sends ends in an answer or in the end of its connection. A client that stalls
// in the middle of a message is dropped after a while; one that waits between messages is not.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "meta/store.h"
#include "meta/wire_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::meta {

struct ServerOptions {
  size_t connections_max = 4096;
  Duration message_timeout = 10_s;  // to send a message that has begun, and to take an answer
  // How long a question for changes waits; a RemoteStore expects the default at most.
  Duration poll_wait = 5_s;
};

// On the core of the store, which outlives it.
class Server {
 public:
  Server(env::Env& env, Store& store, ServerOptions options = {});
  ~Server();

  // Serves there from now on. The real port, if none was asked for. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at);
  // Once, before it is destroyed: all connections end.
  task::Task<void> close();

 private:
  task::Task<void> accept_all(env::Listener& listener);
  task::Task<void> serve(env::Connection connection);
  // False: the connection is over.
  task::Task<bool> serve_one(env::Stream& stream);
  task::Task<Result<Answer>> answer(Request request);
  task::Task<Result<Answer>> poll(PollRequest request);

  env::Env& env_;
  Store& store_;
  ServerOptions options_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  size_t connections_ = 0;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::meta
