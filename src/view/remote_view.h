// SPDX-License-Identifier: Apache-2.0
// RemoteView: an Agent whose controller is in another process, and what onlookers ask of it.
//
// It reports by itself, off the path of requests, and never makes one wait. When the controller
// cannot be reached it tries again, and the agent keeps the newest of what it has to say.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "env/env.h"
#include "rpc/client.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "view/agent.h"
#include "view/messages.h"
#include "view/view.h"

namespace cairn::view {

struct RemoteViewOptions {
  rpc::ClientOptions client;  // servers and security
  std::string name;           // of this agent: another process has another
  bool pulls = true;          // what became stale; off: only when asked
  // What a server refuses with whose controller is at another one (rpc::CallOptions).
  std::optional<Errc> elsewhere = std::nullopt;
};

// On one core.
class RemoteView {
 public:
  // Reports from now on.
  RemoteView(env::Env& env, RemoteViewOptions options);
  // Ends what is under way; what was not reported is dropped. Once, before it is destroyed.
  task::Task<void> close();

  // A request is done. Cheap: a copy, and now and then a wake-up.
  void note(const IoVector& vector) {
    agent_.note(vector);
    if (agent_.noted() == 1 || agent_.noted() == kBatchMax) wake_.set();
  }
  Result<SessionId> open_session(SessionInfo info);
  void close_session(SessionId id);
  const Agent& agent() const { return agent_; }

  // Of the controller. Errors as rpc::Client, and those of the controller.
  task::Task<Result<View>> query(std::string volume, task::CancelToken token = {});
  // Subscribes; pushes are decode<Event>.
  task::Task<Result<std::unique_ptr<rpc::Subscription>>> watch(WatchRequest request,
                                                               task::CancelToken token = {});

 private:
  // One attempt. The caller tries again.
  static constexpr Duration kCallLimit = 500_ms;
  static constexpr Duration kRetry = 50_ms;

  task::Task<void> run();
  task::Task<Result<void>> attach();
  task::Task<Result<void>> report(ReportRequest request);
  task::Task<Result<void>> pull();
  task::Task<Result<std::string>> ask(uint16_t method, std::string body, Duration limit,
                                      task::CancelToken token);

  env::Env& env_;
  const std::string name_;
  const bool pulls_;
  const std::optional<Errc> elsewhere_;
  Agent agent_;
  rpc::Client client_;
  task::Event wake_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::view
