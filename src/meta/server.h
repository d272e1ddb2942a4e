// SPDX-License-Identifier: Apache-2.0
// Server: a Store for RemoteStores in other processes, by the protocol of meta/wire_format.h.
//
// Whatever a client sends ends in an answer or in the end of its connection. A client that stalls
// in the middle of a message is dropped after a while; one that waits between messages is not.
//
// With keys it speaks TLS alone, and each client does what its role allows. Whoever has proven
// nothing, by a handshake or, without keys, by a sound request, has few places (ConnectionSlots),
// and no more time than a message.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/connection_slots.h"
#include "env/env.h"
#include "env/stream.h"
#include "meta/client_keys.h"
#include "meta/store.h"
#include "meta/wire_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/context.h"

namespace cairn::meta {

// Somebody who was not let in, or not allowed what it asked; for our own log.
struct RefusedClient {
  env::Address peer;
  std::string name;      // of a client that has proven itself; else empty
  std::string identity;  // that it offered instead, if any: anything a stranger may write
  std::string why;
};

struct ServerOptions {
  env::ConnectionLimits connections{.connections_max = 4096, .unproven_max = 128, .reserved = 512};
  // To shake hands, to send a message that has begun, and to take an answer.
  Duration message_timeout = 10_s;
  // How long a question for changes waits; a RemoteStore expects the default at most.
  Duration poll_wait = 5_s;
  std::shared_ptr<const ClientKeys> clients;             // none: everybody who comes is a writer
  std::function<void(const RefusedClient&)> on_refused;  // may be empty
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
  // One connection.
  struct Visit : env::ConnectionSlots::Slot {
    explicit Visit(task::CancelToken stop) : ending(stop) {}
    env::Address peer;
    bool is_proven = false;
    std::optional<Client> client;  // who it is, if it came with a key
    task::CancelSource ending;
    task::Gate lingering;
  };

  task::Task<void> accept_all(env::Listener& listener);
  task::Task<void> serve(env::Connection connection);
  // False: there is no place for it.
  bool admit(Visit& visit);
  void prove(Visit& visit);
  task::Task<void> serve_stream(Visit& visit, std::unique_ptr<env::Stream> stream);
  // Null: it was not let in, which was noted.
  task::Task<std::unique_ptr<env::Stream>> secure(Visit& visit, std::unique_ptr<env::Stream> plain);
  // False: the connection is over.
  task::Task<bool> serve_one(Visit& visit, env::Stream& stream);
  task::Task<void> turn_away(Visit& visit, env::Stream& stream, Bytes head);
  task::Task<Result<Answer>> answer_client(Visit& visit, Request request);
  task::Task<Result<Answer>> answer(Request request);
  task::Task<Result<Answer>> poll(PollRequest request);
  void note(const Visit& visit, std::string identity, std::string why);

  env::Env& env_;
  Store& store_;
  ServerOptions options_;
  std::optional<tls::Context> tls_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  env::ConnectionSlots slots_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::meta
