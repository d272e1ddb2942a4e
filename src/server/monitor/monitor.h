// SPDX-License-Identifier: Apache-2.0
// Monitor: what a process tells of itself over HTTP. /metrics is for Prometheus, /healthz for
// whoever starts processes again or leaves them out: 200 while it can be used, 503 when it fails.
// /api/v1/status and /api/v1/events are the same as JSON for programs that may know more
// (access.h). Nothing can be changed there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/metrics_text.h"
#include "base/problem.h"
#include "crypto/hash.h"
#include "drive/health.h"
#include "env/env.h"
#include "http/server.h"
#include "server/control/control_format.h"
#include "server/events/event_log.h"
#include "server/monitor/access.h"
#include "server/monitor/process_metrics.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::server {

struct Wellness {
  drive::Health health = drive::Health::kOk;
  std::string json;  // an object that says why, with its "health"
};

// On the control core. Closed before its source goes.
class Monitor {
 public:
  // Whom it speaks for.
  class Source {
   public:
    // What every process has, and the figures of this one.
    virtual ProcessState state() = 0;
    virtual task::Task<void> tell_metrics(MetricsText& text) = 0;
    virtual task::Task<Wellness> tell_health() = 0;
    // All that can be told of it as JSON, with its "health"; left out: as tell_health().
    virtual task::Task<std::string> tell_status();

   protected:
    ~Source() = default;
  };

  // `events` are shown where there are any; they outlive it. `token`: who may use the API.
  Monitor(env::Env& env, Source& source, EventLog* events,
          std::optional<crypto::Digest> token = std::nullopt,
          const http::ServerLimits& limits = {});

  // At all of them; gives them with the ports that were chosen. What a process held that was killed
  // a moment ago is waited for. The Problem says what to do; close() follows in any case.
  task::Task<Attempt<std::vector<env::Address>>> listen(std::vector<env::Address> addresses);
  task::Task<void> close();

  // Clients that may wait for an event at a time; others are answered at once.
  static constexpr size_t kWaitingMax = 8;

 private:
  task::Task<http::Page> metrics();
  task::Task<http::Page> health();
  task::Task<http::Page> status(http::Asked asked);
  task::Task<http::Page> events(http::Asked asked);
  void add_own(MetricsText& text) const;

  env::Env& env_;
  Source& source_;
  EventLog* const events_;
  ApiAccess access_;
  task::CancelSource closing_;
  size_t waiting_ = 0;  // clients, for an event
  http::Server server_;
};

}  // namespace cairn::server
