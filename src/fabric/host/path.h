// SPDX-License-Identifier: Apache-2.0
// Path: one way to a namespace, through one controller.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "env/env.h"
#include "fabric/host/controller.h"
#include "fabric/host/host_pool.h"
#include "fabric/host/namespace_info.h"
#include "fabric/host/session.h"
#include "nvme/format/ana_format.h"
#include "nvme/format/status_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::fabric {

// A controller that reconnects by itself and that others may use too, what it last said of the
// namespace, and how well it reaches it. On one core; closed before it is destroyed.
class Path final : private HostController::User {
 public:
  // Who uses the path. Must outlive it.
  class User {
   public:
    // What the controller says of the namespace now. An error: the path cannot be used with it.
    virtual Result<void> path_described(Path& path, const NamespaceInfo& info) = 0;
    // The session may be used for the namespace. As Admission::enter().
    virtual task::Task<Result<void>> admit(HostSession& session, NamespaceInfo info,
                                           task::CancelToken token) = 0;
    // rank() or is_stopped() may be another.
    virtual void path_changed(Path& path) = 0;

   protected:
    ~User() = default;
  };

  // Lower is better.
  enum class Rank : uint8_t { kOptimized, kNonOptimized, kUnusable };

  // The pool outlives the path.
  Path(HostPool& pool, const HostSession::Options& options, const NamespaceName& name, User& user);

  void start();
  // Waits until it is known whether the first attempt to reach the namespace has succeeded, and
  // gives the outcome: errors of HostSession::open and read_namespace. kCancelled, kTimedOut: by
  // the token.
  task::Task<Result<void>> first_attempt(task::CancelToken token);
  // Once, also when start() was never called.
  task::Task<void> close();

  Rank rank() const;
  // Of a usable path.
  HostSession& session() { return *controller_->session(); }
  bool is_connected() const { return controller_ != nullptr && controller_->session() != nullptr; }
  // What the controller last said of the namespace does not fit.
  bool is_refused() const { return !is_described_; }
  // It will never be usable again.
  bool is_stopped() const { return controller_ != nullptr && controller_->is_stopped(); }
  // After start().
  HostController& controller() { return *controller_; }
  const std::optional<NamespaceInfo>& info() const { return info_; }
  nvme::AnaState ana_state() const { return ana_state_; }

  // A command came back with a path related status: the path is not used until the controller says
  // that it is better.
  void failed(nvme::Status status);

 private:
  void controller_live() override { begin(*controller_->session()); }
  void controller_lost(const Error&) override { user_.path_changed(*this); }
  void controller_failed(const Error& why) override { settle_first(fail(why)); }
  void controller_stopped() override;
  void controller_event(const nvme::AsynchronousEvent& event) override;
  void begin(HostSession& session);
  void settle_first(const Result<void>& result);
  task::Task<Result<void>> learn(HostSession& session, task::CancelToken token);
  task::Task<Result<void>> describe(HostSession& session, task::CancelToken token);
  task::Task<void> attend(HostSession& session);
  task::Task<bool> learn_until_known(HostSession& session, task::CancelToken token);
  task::Task<void> follow(HostSession& session, task::CancelToken token);
  task::Task<void> wait_for_news(Duration pause, task::CancelToken token);
  task::Task<void> read_changes(HostSession& session, task::CancelToken token);
  void set_ana_state(nvme::AnaState state);

  HostPool& pool_;
  env::Env& env_;
  const HostSession::Options options_;
  const NamespaceName name_;
  User& user_;
  std::optional<NamespaceInfo> info_;
  nvme::AnaState ana_state_ = nvme::AnaState::kOptimized;
  bool is_described_ = true;  // the namespace is the one it was
  bool is_reached_ = false;   // this session has told what it is and how well it reaches it
  // News for follow(), which serves one after the other however many come.
  task::Event news_;
  bool namespaces_changed_ = false;
  bool ana_changed_ = false;
  task::Event first_;
  Result<void> first_result_;
  HostController* controller_ = nullptr;     // the pool's
  task::CancelSource* attending_ = nullptr;  // ends what is done with the session
  task::Gate gate_;
};

}  // namespace cairn::fabric
