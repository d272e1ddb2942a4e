// SPDX-License-Identifier: Apache-2.0
// Server: one or several Services for rpc::Clients in other processes, by the protocol of
// rpc/wire_format.h.
//
// Any input of a client causes a reply or the end of its connection. A client that stalls in the
// middle of a frame, reads nothing, or does not answer pings is dropped.
//
// With keys the server accepts only TLS, and each client may make the calls that its role allows.
// Clients that have proven nothing, by a handshake or, without keys, by a greeting, have few places
// (ConnectionSlots), and no more time than a frame.
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
#include "rpc/client_keys.h"
#include "rpc/service.h"
#include "rpc/visit.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"
#include "tls/context.h"

namespace cairn::rpc {

// A client that was not admitted, or not allowed to make its call; for our own log.
struct RefusedClient {
  env::Address peer;
  std::string name;      // of a client that has proven itself; else empty
  std::string identity;  // that it offered instead, if any: anything a stranger may write
  std::string why;
};

struct ServerOptions {
  env::ConnectionLimits connections{.connections_max = 4096, .unproven_max = 128, .reserved = 512};
  VisitOptions visit{.link = {.ping_interval = 5_s}};
  Duration drain_timeout = 1_s;                          // of calls in flight when it closes
  std::shared_ptr<const ClientKeys> clients;             // none: every client is a writer
  std::function<void(const RefusedClient&)> on_refused;  // may be empty
};

// On the core of the services, which outlive it.
class Server {
 public:
  Server(env::Env& env, Service& service, ServerOptions options = {});
  ~Server();

  // Another service at the same addresses, which a client asks for by its name. Before listen().
  void add(Service& service) { services_.push_back(&service); }
  // Serves there from now on. The real port, if none was asked for. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at);
  // Once, before it is destroyed. Tells clients; ends subscriptions, gives calls in flight
  // drain_timeout to complete, then ends all connections.
  task::Task<void> close();

 private:
  // One connection.
  struct Guest : env::ConnectionSlots::Slot {
    explicit Guest(task::CancelToken stop) : ending(stop) {}
    env::Address peer;
    bool is_proven = false;
    std::optional<KnownClient> client;  // who it is, if it came with a key
    task::CancelSource ending;          // while it has proven nothing
    Visit* visit = nullptr;             // once it may greet
    task::Gate lingering;
  };

  task::Task<void> accept_all(env::Listener& listener);
  task::Task<void> serve(env::Connection connection);
  // False: there is no free place for it.
  bool admit(Guest& guest);
  void prove(Guest& guest);
  // Null: it was not admitted, which was reported.
  task::Task<std::unique_ptr<env::Stream>> secure(Guest& guest, std::unique_ptr<env::Stream> plain);
  task::Task<void> serve_stream(Guest& guest, std::unique_ptr<env::Stream> stream);
  task::Task<void> await_departures();
  void evict(Guest& guest);
  void note(const Guest& guest, std::string identity, std::string why);

  env::Env& env_;
  std::vector<Service*> services_;  // by different names
  ServerOptions options_;
  std::optional<tls::Context> tls_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  env::ConnectionSlots slots_;
  std::vector<Guest*> guests_;
  task::Event left_;  // some guest has
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::rpc
