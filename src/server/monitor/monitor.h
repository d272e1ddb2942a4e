// SPDX-License-Identifier: Apache-2.0
// Monitor: what a process tells of itself over HTTP. /metrics is for Prometheus, /healthz for
// whoever starts processes again or leaves them out: 200 while it can be used, 503 when it fails.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/metrics_text.h"
#include "base/problem.h"
#include "drive/health.h"
#include "env/env.h"
#include "http/server.h"
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
    virtual task::Task<void> tell_metrics(MetricsText& text) = 0;
    virtual task::Task<Wellness> tell_health() = 0;

   protected:
    ~Source() = default;
  };

  Monitor(env::Env& env, Source& source, const http::ServerLimits& limits = {});

  // At all of them; gives them with the ports that were chosen. What a process held that was killed
  // a moment ago is waited for. The Problem says what to do; close() follows in any case.
  task::Task<Attempt<std::vector<env::Address>>> listen(std::vector<env::Address> addresses);
  task::Task<void> close() { return server_.close(); }

 private:
  task::Task<http::Page> metrics();
  task::Task<http::Page> health();
  void add_own(MetricsText& text) const;

  env::Env& env_;
  Source& source_;
  http::Server server_;
};

}  // namespace cairn::server
