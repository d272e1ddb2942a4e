// SPDX-License-Identifier: Apache-2.0
// Path: one way to a namespace, through one controller.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "env/env.h"
#include "fabric/host/controller.h"
#include "fabric/host/namespace_info.h"
#include "fabric/host/session.h"
#include "nvme/ana_format.h"
#include "nvme/status_format.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::fabric {

// A controller that reconnects by itself, what it last said of the namespace, and how well it
// reaches it. On one core; closed before it is destroyed.
class Path final : private HostController::User {
 public:
  // Who uses the path. Must outlive it.
  class User {
   public:
    // What the controller says of the namespace now. An error: the path cannot be used with it.
    virtual Result<void> path_described(Path& path, const NamespaceInfo& info) = 0;
    // rank() or is_stopped() may be another.
    virtual void path_changed(Path& path) = 0;

   protected:
    ~User() = default;
  };

  // Lower is better.
  enum class Rank : uint8_t { kOptimized, kNonOptimized, kUnusable };

  Path(env::Env& env, const HostSession::Options& options, uint32_t nsid, User& user);

  void start() { controller_.start(); }
  task::Task<Result<void>> first_attempt(task::CancelToken token) {
    return controller_.first_attempt(token);
  }
  task::Task<void> close() { return controller_.close(); }

  Rank rank();
  // Of a usable path.
  HostSession& session() { return *controller_.session(); }
  // It will never be usable again.
  bool is_stopped() const { return controller_.is_stopped(); }
  HostController& controller() { return controller_; }
  const std::optional<NamespaceInfo>& info() const { return info_; }
  nvme::AnaState ana_state() const { return ana_state_; }

  // A command came back with a path related status: the path is not used until the controller says
  // that it is better.
  void failed(nvme::Status status);

 private:
  task::Task<Result<void>> controller_opened(HostSession& session,
                                             task::CancelToken token) override;
  void controller_live() override { user_.path_changed(*this); }
  void controller_lost(const Error&) override { user_.path_changed(*this); }
  void controller_stopped() override { user_.path_changed(*this); }
  void controller_event(const nvme::AsynchronousEvent& event) override;
  task::Task<Result<void>> describe(HostSession& session, task::CancelToken token);
  task::Task<void> follow(HostSession& session);
  task::Task<void> wait_for_news(HostSession& session, Duration pause);
  task::Task<void> read_changes(HostSession& session);
  void set_ana_state(nvme::AnaState state);

  env::Env& env_;
  const uint32_t nsid_;
  User& user_;
  std::optional<NamespaceInfo> info_;
  nvme::AnaState ana_state_ = nvme::AnaState::kOptimized;
  bool is_described_ = true;  // the namespace is the one it was
  // News for follow(), which serves one after the other however many come.
  task::Event news_;
  bool namespaces_changed_ = false;
  bool ana_changed_ = false;
  HostController controller_;
};

}  // namespace cairn::fabric
