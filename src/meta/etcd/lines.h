// SPDX-License-Identifier: Apache-2.0
// Lines: questions to one of several servers, over connections that are kept, each with a deadline.
//
// A server that cannot be reached, hangs up or stays silent is left for the next one; when all have
// failed there is a pause, which doubles. A question that may be repeated is asked again until its
// time is over; another one only as long as it was certainly not heard. Who is refused by all of
// them, three times, is told at once. How a question looks on the wire is the Line's affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "rpc/security.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::meta::etcd {

struct Question {
  std::string target;  // what of the server is meant
  std::string body;
  bool repeatable = false;         // carrying it out twice is like once
  Duration attempt_timeout = 3_s;  // for the answer to one that is repeatable
};

struct Reply {
  uint16_t status = 0;
  std::string body;
};

// One question after the other on one connection.
class Line {
 public:
  virtual ~Line() = default;
  // kCorrupt, kUnsupported: damaged on the way, or no server of this kind. After any error only the
  // line's end may follow.
  virtual task::Task<Result<Reply>> ask(const Question& question, task::CancelToken token) = 0;
  // Whether another may follow.
  virtual bool is_reusable() const = 0;
};

struct LinesOptions {
  std::vector<env::Address> servers;              // at least one
  Duration timeout = 10_s;                        // of a question, with everything that is tried
  Duration connect_timeout = 2_s;                 // of one attempt
  size_t connections_max = 320;                   // a watch has one while it waits
  std::shared_ptr<const rpc::Security> security;  // none: nothing is encrypted
  // Told who we are to the servers when they refuse us: errors cannot say it. May be empty.
  std::function<void(std::string)> on_refused;
};

// One core.
class Lines {
 public:
  using Make = std::function<std::unique_ptr<Line>(std::unique_ptr<env::Stream>, env::Address)>;

  Lines(env::Env& env, LinesOptions options, Make make);

  // kUnreachable: not heard by any server. kTimedOut, kReset, and the line's errors: it may have
  // been heard.
  task::Task<Result<Reply>> ask(Question question, task::CancelToken token);

  // A connection of one's own to a server that answers; the same rules.
  task::Task<Result<std::unique_ptr<env::Stream>>> connect(env::Address& server,
                                                           task::CancelToken token);
  // Tells on_refused, if there is somebody we can be.
  void note_refusal() const;
  // Leaves `server` for the next one, if it is the one in use.
  void leave(const env::Address& server);

  // Requested by close(), with kClosed: for those who wait on a connection of their own.
  task::CancelToken stop_token() { return stop_.token(); }
  bool is_closed() const { return gate_.is_closed(); }
  // Ends what is under way with kClosed. Once, before it is destroyed.
  task::Task<void> close();

 private:
  struct Tried {
    Result<Reply> reply;
    bool was_sent = false;
  };
  task::Task<Tried> attempt(const Question& question, task::CancelToken token);
  task::Task<Result<Reply>> ask_inside(const Question& question, task::CancelToken token);
  // After the `failures`-th failure in a row.
  task::Task<void> pause(size_t failures, task::CancelToken token);

  env::Env& env_;
  LinesOptions options_;
  Make make_;
  size_t current_ = 0;  // the server in use
  std::vector<std::unique_ptr<Line>> idle_;
  task::Semaphore free_;
  task::CancelSource stop_;
  task::Gate gate_;
  task::Gate lingering_;  // the last words of encrypted connections
};

}  // namespace cairn::meta::etcd
