// SPDX-License-Identifier: Apache-2.0
// Remote controllers and namespaces by their URIs: what goes wrong is a Problem in the user's
// terms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/problem.h"
#include "env/env.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/session.h"
#include "fabric/host/uri.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

// A namespace as a drive. When it is not there, the Problem says which ones are.
task::Task<Attempt<std::unique_ptr<fabric::RemoteDrive>>> open_drive(env::Env& env,
                                                                     fabric::Uri uri);

// A session with one controller, for admin commands. Closed before it is destroyed.
class ControllerLink final : private fabric::HostSession::User {
 public:
  // Through `path` of the URI.
  static task::Task<Attempt<std::unique_ptr<ControllerLink>>> open(env::Env& env,
                                                                   const fabric::Uri& uri,
                                                                   size_t path = 0);
  fabric::HostSession& session() { return *session_; }
  task::CancelToken token() { return session_->env().stop_token(); }
  task::Task<void> close() { return session_->close(); }

 private:
  ControllerLink() = default;
  void session_lost(const Error&) override {}
  void session_event(const nvme::AsynchronousEvent&) override {}

  std::unique_ptr<fabric::HostSession> session_;
};

// The nsid of the URI's namespace, which it may name by UUID. The Problem says which ones are
// there.
task::Task<Attempt<uint32_t>> nsid_of(ControllerLink& link, const fabric::Uri& uri);

// That the URI's namespace is not there, and which ones are.
task::Task<Problem> missing_namespace(ControllerLink& link, const fabric::Uri& uri);

}  // namespace cairn::server
