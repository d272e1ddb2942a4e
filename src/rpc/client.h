// SPDX-License-Identifier: Apache-2.0
// Client: calls to one of several servers of a service, over a connection that is made again when
// it breaks.
//
// A server that cannot be reached, hangs up, stays silent or does not answer in time is left for
// the next one; when all have failed there is a pause, which doubles. A call that may be repeated
// is tried again until its time is over; another one only as long as it was certainly not heard.
// Who is refused by all servers, three times, is told at once.
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
#include "env/env.h"
#include "rpc/security.h"
#include "rpc/session.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rpc {

struct ClientOptions {
  std::vector<env::Address> servers;  // at least one
  SessionOptions session;
  Duration timeout = 10_s;                   // of a call, with everything that is tried
  Duration connect_timeout = 2_s;            // of one attempt, greetings included
  std::shared_ptr<const Security> security;  // none: nothing is encrypted
  // Told who we are to the servers when they refuse us: errors cannot say it. May be empty.
  std::function<void(std::string)> on_refused;
  ErrorTexts texts;
};

struct CallOptions {
  bool repeatable = false;          // carrying it out twice is like once
  std::optional<Duration> timeout;  // none: the client's
  Duration attempt_timeout = 3_s;   // for one attempt of a call that is repeatable
  // A refusal with this code says that nothing was done, and that another server may do it: of
  // several that elect a leader, the others refuse so. As if that one had not heard the call.
  std::optional<Errc> elsewhere = std::nullopt;
};

// On one core.
class Client {
 public:
  Client(env::Env& env, ClientOptions options);
  ~Client();

  // What the service said, also when that is a refusal. kUnreachable: not heard by any server.
  // kDenied: they do not let us in; kUnsupported: another version or service, or TLS at one end
  // alone; kInvalid: larger than they take. Nothing was done then. kTimedOut, kReset, kCorrupt,
  // kCancelled, kClosed: it may have been heard.
  task::Task<Result<Reply>> call(MethodCall request, CallOptions options, task::CancelToken token);
  // Done when it is on its way to a server; the same errors. When its connection ends so does the
  // subscription: its owner subscribes again from where it was.
  task::Task<Result<std::unique_ptr<Subscription>>> subscribe(MethodCall request,
                                                              task::CancelToken token);

  // Tells on_refused, if there is somebody we can be.
  void note_refusal() const;
  // Requested by close(), with kClosed.
  task::CancelToken stop_token() { return stop_.token(); }
  bool is_closed() const { return gate_.is_closed(); }
  // Ends what is under way with kClosed, and all connections. Once, before it is destroyed;
  // subscriptions are destroyed before.
  task::Task<void> close();

 private:
  // A connection that is being made, for all who wait for it.
  struct Connecting {
    task::Event done;
    std::shared_ptr<Session> session;
    std::optional<Error> error;
  };
  struct Attempt;

  task::Task<Result<std::shared_ptr<Session>>> session(task::CancelToken token);
  task::Task<void> connect(std::shared_ptr<Connecting> connecting);
  task::Task<Result<std::shared_ptr<Session>>> open(const env::Address& server,
                                                    task::CancelToken token);
  task::Task<Result<void>> try_once(Attempt& attempt, task::CancelToken token);
  task::Task<Result<void>> try_until_done(Attempt& attempt, task::CancelToken token);
  // Goes on to the next server, if `session` is the one in use.
  void leave(const std::shared_ptr<Session>& session);
  task::Task<void> pause(size_t failures, task::CancelToken token);
  Error explained(const Error& error) const;

  env::Env& env_;
  const ClientOptions options_;
  size_t current_ = 0;                             // the server in use
  std::shared_ptr<Session> session_;               // to it
  std::vector<std::shared_ptr<Session>> running_;  // that one, and those that were left
  std::shared_ptr<Connecting> connecting_;
  task::CancelSource stop_;
  task::Gate gate_;       // calls
  task::Gate sessions_;   // their tasks
  task::Gate lingering_;  // the last words of encrypted connections
};

}  // namespace cairn::rpc
