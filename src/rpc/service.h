// SPDX-License-Identifier: Apache-2.0
// Service: what an rpc::Server serves. One class per service implements it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "env/address.h"
#include "rpc/client_keys.h"
#include "rpc/wire_format.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rpc {

class Link;

struct Method {
  const char* verb = "";       // what a client may not do, for logs: "commit"
  Role needs = Role::kWriter;  // of clients with keys; the others may call everything
  bool pushes = false;         // it is subscribed to, not called
};

// Who calls. Valid for the call.
struct Caller {
  const env::Address& peer;
  const KnownClient* client;  // none: this server has no keys
  uint16_t minor = 0;         // the lesser of both ends' minor versions of the service
};

// What the service calls for a subscription, on its server's core, for as long as it serves it.
class Pushes {
 public:
  Pushes(Link& link, uint64_t id, uint32_t window) : link_(link), id_(id), credit_(window) {}

  // Queues it for the subscriber; waits while that has taken none of those before. kInvalid: larger
  // than it takes; by the token: the subscription is over.
  task::Task<Result<void>> push(std::string body, task::CancelToken token);

 private:
  friend class Visit;
  Link& link_;
  const uint64_t id_;
  size_t body_max_ = 0;
  task::Semaphore credit_;
};

// On the core of its server, which it outlives.
//
// A call is carried out as a task of its own, any number of a connection at once. The token is
// requested when the client has cancelled it, its time is over, the connection is gone, or the
// server closes; what is called then still ends, and is awaited.
class Service {
 public:
  virtual ~Service() = default;

  virtual std::string_view name() const = 0;
  virtual Version version() const = 0;
  // None: there is no such method.
  virtual std::optional<Method> find(uint16_t method) const = 0;

  // The reply. Of an error the client gets the code; a body that makes no sense is kCorrupt.
  virtual task::Task<Result<std::string>> call(uint16_t method, std::string body, Caller caller,
                                               task::CancelToken token) = 0;
  // Pushes until it has no more, or the token says so; the result ends the subscription.
  virtual task::Task<Result<void>> subscribe(uint16_t /*method*/, std::string /*body*/,
                                             Caller /*caller*/, Pushes& /*pushes*/,
                                             task::CancelToken /*token*/) {
    co_return fail(Errc::kUnsupported, "nothing to subscribe to");
  }
};

}  // namespace cairn::rpc
