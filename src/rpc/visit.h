// SPDX-License-Identifier: Apache-2.0
// Visit: a server's end of one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "env/stream.h"
#include "rpc/link.h"
#include "rpc/service.h"
#include "rpc/wire_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::rpc {

// What one connection may use. Its memory is at most call_bytes_max for requests, message_max for
// the one that arrives, and queue_max for replies, besides those of calls that were under way when
// the queue filled: nothing more is read then.
struct VisitLimits {
  uint32_t calls_max = 256;
  uint32_t subscriptions_max = 256;
  uint32_t call_bytes_max = 16_MiB;
  uint32_t message_max = 4_MiB;  // of a request
  uint32_t reply_max = 4_MiB;    // of a reply or push; a client may take less
  size_t queue_max = 8_MiB;
};

struct VisitOptions {
  VisitLimits limits;
  LinkOptions link;               // queue_max is that of the limits
  Duration hello_timeout = 10_s;  // until a greeting has come
  Duration call_timeout = 60_s;   // of a call that names no time, and at most
};

// What a visit tells its server; called on its core.
struct VisitHooks {
  std::function<void()> on_greeted;                 // it has proven to be a client of a service
  std::function<void(std::string why)> on_refused;  // for our own log
};

// One core. serve() once, to its end. Of the services, at least one, the client names its own when
// it greets.
class Visit {
 public:
  Visit(env::Env& env, const std::vector<Service*>& services, std::unique_ptr<env::Stream> stream,
        std::optional<KnownClient> client, const VisitOptions& options, VisitHooks hooks);
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  // Until the client leaves or makes no sense, or end() is called.
  task::Task<void> serve();

  // Says that no more calls are taken, ends subscriptions, and ends when calls under way have.
  void drain();
  // Cancels everything and ends.
  void end(Errc reason);

 private:
  struct Running {
    Running(size_t bytes, task::CancelToken parent) : size(bytes), cancel(parent) {}
    size_t size;
    task::CancelSource cancel;
    std::unique_ptr<Pushes> pushes;  // of a subscription
  };

  // The client's greeting, answered; false: it is over.
  task::Task<bool> greet();
  void turn_away();
  // Chooses the service.
  std::optional<GoodbyeReason> object_to(const Hello& hello);
  // Whether the client kept to the rules.
  bool handle(Frame frame);
  bool begin(Frame frame);
  bool add_credit(const FrameHead& head);
  // Why not, if it may not.
  std::optional<Errc> refusal_of(const FrameHead& head) const;
  task::Task<void> run_call(Frame frame, Running& running);
  task::Task<void> run_subscription(Frame frame, Running& running);
  void finish(uint64_t id, Result<std::string> result);
  void say_goodbye(GoodbyeReason reason, uint32_t amount = 0);
  void end_if_drained();
  Caller caller() const;

  env::Env& env_;
  const std::vector<Service*>& services_;
  Service* service_;  // the first one, until the client has named its own
  const std::optional<KnownClient> client_;
  const VisitOptions options_;
  const VisitHooks hooks_;
  const env::Address peer_;
  Link link_;
  Hello hello_;
  size_t reply_max_ = 0;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Running> running_;
  size_t subscriptions_ = 0;
  size_t bytes_ = 0;
  bool is_greeted_ = false;
  bool is_draining_ = false;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::rpc
