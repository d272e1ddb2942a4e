// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/monitor.h"

#include <fmt/format.h>

#include <utility>

#include "server/common/advice.h"
#include "server/common/holder_retry.h"

namespace cairn::server {

Monitor::Monitor(env::Env& env, Source& source, const http::ServerLimits& limits)
    : env_(env), source_(source), server_(env, limits) {
  server_.add("/metrics", [this](const std::string&) { return metrics(); });
  server_.add("/healthz", [this](const std::string&) { return health(); });
}

task::Task<Attempt<std::vector<env::Address>>> Monitor::listen(
    std::vector<env::Address> addresses) {
  std::vector<env::Address> listening;
  for (const env::Address& at : addresses) {
    Result<env::Address> local = fail(Errc::kClosed, "not tried");
    HolderRetry retry(env_);
    for (bool again = true; again;) {
      local = server_.listen(at);
      again = co_await retry.after(local);
    }
    if (!local) co_return std::unexpected(cannot_listen(at, local.error()));
    listening.push_back(std::move(*local));
  }
  co_return listening;
}

task::Task<http::Page> Monitor::metrics() {
  MetricsText text;
  co_await source_.tell_metrics(text);
  add_own(text);
  co_return http::Page{.type = "text/plain; version=0.0.4; charset=utf-8", .body = text.text()};
}

task::Task<http::Page> Monitor::health() {
  Wellness told = co_await source_.tell_health();
  const bool can_be_used = told.health != drive::Health::kFailing;
  co_return http::Page{.status = can_be_used ? http::Status::kOk : http::Status::kUnavailable,
                       .type = "application/json",
                       .body = std::move(told.json) + "\n"};
}

void Monitor::add_own(MetricsText& text) const {
  using Type = MetricsText::Type;
  text.family(Type::kCounter, "cairn_http_requests_total",
              "Requests over HTTP that were answered, by status.");
  for (const auto& [status, count] : server_.answered()) {
    text.sample({{"code", fmt::to_string(static_cast<int>(status))}}, count);
  }
  text.family(Type::kGauge, "cairn_http_connections", "Connections over HTTP that are open.");
  text.sample({}, server_.connections());
  text.family(Type::kCounter, "cairn_http_connections_refused_total",
              "Connections over HTTP that found no place.");
  text.sample({}, server_.refused());
}

}  // namespace cairn::server
