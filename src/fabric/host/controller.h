// SPDX-License-Identifier: Apache-2.0
// HostController: a controller of a subsystem at one address, connected again whenever it is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/list.h"
#include "env/env.h"
#include "fabric/host/session.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::fabric {

// Goes from session to session until it is closed. After a loss it tries again with growing pauses,
// half of each at random so that many hosts do not come back at once; a target that refuses for
// good is asked again with the longest pause, because what it was told may change. Used on one
// core. Closed before it is destroyed.
class HostController final : private HostSession::User {
 public:
  // Who needs the controller; any number of them. In none of these calls may one join or leave.
  class User : public ListHook<HostController> {
   public:
    // session() is there from now on, or not any more.
    virtual void controller_live() = 0;
    virtual void controller_lost(const Error& why) = 0;
    // An attempt to connect has failed; others follow.
    virtual void controller_failed(const Error& why) = 0;
    // It will not come back: the process is to end, or close() was called.
    virtual void controller_stopped() = 0;
    virtual void controller_event(const nvme::AsynchronousEvent& event) = 0;

   protected:
    ~User() = default;
  };

  // `options` with the host's names filled in (name_host).
  HostController(env::Env& env, const HostSession::Options& options);
  ~HostController();

  // Begins to connect. Once.
  void start();
  // `user` hears of what happens from now on, until it leaves; it must live until then. Somebody
  // new is a reason to try again at once.
  void join(User& user);
  void leave(User& user);
  // Ends the session in good order and stops. Also when start() was never called. Once.
  task::Task<void> close();

  // The session while it is live, else null. Those who use it over a wait hold its gate.
  HostSession* session() { return is_live_ ? session_.get() : nullptr; }
  bool is_stopped() const { return is_stopped_; }
  // Why the last session, or attempt at one, ended.
  const std::optional<Error>& last_error() const { return last_error_; }
  // Sessions that became live.
  uint64_t sessions() const { return sessions_; }
  // What the I/O queues of all sessions have moved, those that ended included.
  LaneTraffic traffic() const;
  const env::Address& address() const { return options_.address; }
  const HostSession::Options& options() const { return options_; }

 private:
  void session_lost(const Error& why) override;
  void session_event(const nvme::AsynchronousEvent& event) override;
  task::Task<void> run();
  task::Task<Result<void>> one_session();
  Duration next_pause();

  env::Env& env_;
  HostSession::Options options_;
  List<User, HostController> users_;
  std::unique_ptr<HostSession> session_;
  bool is_live_ = false;
  bool is_stopped_ = false;
  uint32_t failures_ = 0;  // in a row
  bool refused_ = false;
  bool try_at_once_ = false;  // in another way
  uint64_t sessions_ = 0;
  LaneTraffic past_;  // of sessions that ended
  std::optional<Error> last_error_;
  task::Event lost_;
  task::Event hurry_;  // the pause before the next attempt ends
  task::CancelSource closing_;
  task::Gate gate_;
};

// Fills in host_nqn and host_id where they are empty: one from the other, both at random when there
// is none. All controllers one host uses together must have the same.
void name_host(env::Env& env, HostOptions& options);

}  // namespace cairn::fabric
