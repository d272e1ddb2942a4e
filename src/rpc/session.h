// SPDX-License-Identifier: Apache-2.0
// Session: a client's end of one connection. Any number of calls at once, answered in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "env/stream.h"
#include "rpc/link.h"
#include "rpc/wire_format.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rpc {

// What the service said: a body, or why not.
struct Reply {
  std::optional<Errc> refusal;
  std::string body;
};

struct MethodCall {
  uint16_t method = 0;
  std::string body;
};

struct SessionOptions {
  std::string service;  // by name, at most kServiceNameMax bytes
  Version service_version;
  uint32_t push_window = 4;    // pushes of one subscription that wait for its next()
  size_t message_max = 4_MiB;  // of what the server says
  LinkOptions link;
};

class Subscription;

// One core. open(), then run() until the end; calls in between. Held by shared_ptr, because
// subscriptions outlive it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(env::Env& env, std::unique_ptr<env::Stream> stream, const SessionOptions& options);
  ~Session();

  // The greetings. kUnsupported: another version or service, or TLS; kCorrupt: no such
  // server; kReset, kTimedOut, kCancelled. After an error run() returns at once.
  task::Task<Result<void>> open(task::CancelToken token);
  // Once, whatever open() said, before destruction: until the connection is over. Calls and
  // subscriptions under way have then ended.
  task::Task<void> run();

  // Waits until the server has room for it, and for the reply. kReset, and the link's errors: the
  // connection is over; with is_sent the server may have heard it. kTimedOut, kCancelled: by the
  // token, at once; the server is told, and the call keeps its place until that has ended it.
  // kInvalid: the body is larger than the server takes.
  //
  // `until` goes to the server, which stops by itself then; the token must end by it, too.
  task::Task<Result<Reply>> call(MethodCall request, Time until, task::CancelToken token,
                                 bool& is_sent);
  // Done when it is on its way; errors as call().
  task::Task<Result<std::unique_ptr<Subscription>>> subscribe(MethodCall request,
                                                              task::CancelToken token);

  // Whether new calls may come: it is open, and neither end wants to stop.
  bool takes_calls() const { return is_open_ && !is_retired_ && !link_.is_over(); }
  // No more calls; it ends when nobody waits for those under way.
  void retire();
  void end(Error reason) { link_.end(reason); }
  // Whether open() failed because the server speaks TLS.
  bool met_tls() const { return looks_encrypted(link_.strange_bytes()); }
  const Welcome& welcome() const { return welcome_; }
  // The lesser of both ends' minor versions of the service.
  uint16_t service_minor() const;

 private:
  friend class Subscription;
  // A call in its caller's frame.
  struct Waiting {
    task::Event done;
    std::optional<Result<Reply>> reply;
  };
  // A call or subscription that the server has not ended.
  struct Slot {
    size_t size = 0;
    bool is_subscription = false;
    Waiting* waiting = nullptr;            // none: nobody does any more
    Subscription* subscription = nullptr;  // likewise
    uint32_t allowance = 0;                // pushes that may still come
  };

  task::Semaphore& places(bool is_subscription);
  // The id, which a subscription also has by then.
  task::Task<Result<uint64_t>> begin(MethodCall request, Slot slot, uint32_t timeout_ms,
                                     task::CancelToken token);
  Result<void> take_welcome(const Result<Frame>& frame);
  // Errors: the server lies.
  Result<void> handle(Frame frame);
  Result<void> take_reply(Frame frame);
  Result<void> take_push(Frame frame);
  void abandon(uint64_t id);
  void end_all();
  void end_if_idle();

  env::Env& env_;
  const SessionOptions options_;
  Link link_;
  Welcome welcome_;
  bool is_open_ = false;
  bool is_retired_ = false;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Slot> slots_;
  size_t beginning_ = 0;  // calls that wait for room
  task::Semaphore calls_{0};
  task::Semaphore subscriptions_{0};
  task::Semaphore bytes_{0};
};

// What a server says again and again. Destroying it ends it; the server is told.
class Subscription {
 public:
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  // The next push, in order; waits for it. A refusal: the service ended it, for that reason.
  // kClosed: the service ended it in good order. kReset, and the link's errors: the connection is
  // over. These stay. kTimedOut, kCancelled: by the token; nothing is lost. One call at a time.
  task::Task<Result<Reply>> next(task::CancelToken token);

 private:
  friend class Session;
  explicit Subscription(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  void finish(Result<Reply> end);

  std::shared_ptr<Session> session_;
  uint64_t id_ = 0;  // none: it never began
  std::deque<std::string> pushes_;
  uint32_t taken_ = 0;  // pushes that the server has no new credit for
  std::optional<Result<Reply>> end_;
  task::Event changed_;
};

}  // namespace cairn::rpc
