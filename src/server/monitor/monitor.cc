// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/monitor.h"

#include <fmt/format.h>

#include <utility>

#include "server/common/advice.h"
#include "server/common/holder_retry.h"
#include "server/events/process_events.h"
#include "server/monitor/api_query.h"

namespace cairn::server {

task::Task<std::string> Monitor::Source::tell_status() {
  Wellness told = co_await tell_health();
  co_return std::move(told.json);
}

Monitor::Monitor(env::Env& env, Source& source, EventLog* events,
                 std::optional<crypto::Digest> token, const http::ServerLimits& limits)
    : env_(env),
      source_(source),
      events_(events),
      access_(env, std::move(token)),
      server_(env, limits) {
  server_.add("/metrics", [this](const http::Asked&) { return metrics(); });
  server_.add("/healthz", [this](const http::Asked&) { return health(); });
  server_.add("/api/v1/status", [this](http::Asked asked) { return status(std::move(asked)); });
  if (events_ == nullptr) return;
  server_.add("/api/v1/events",
              [this](http::Asked asked) { return this->events(std::move(asked)); });
}

task::Task<void> Monitor::close() {
  closing_.request();
  co_await server_.close();
}

task::Task<http::Page> Monitor::status(http::Asked asked) {
  std::optional<http::Page> refused = access_.judge(asked);
  if (refused) co_return std::move(*refused);
  if (!asked.query.empty()) {
    co_return api_problem(http::Status::kBadRequest, "nothing can be asked here: leave out '?...'");
  }
  std::string json = co_await source_.tell_status();
  co_return http::Page{.type = "application/json", .body = std::move(json) + "\n"};
}

task::Task<http::Page> Monitor::events(http::Asked asked) {
  std::optional<http::Page> refused = access_.judge(asked);
  if (refused) co_return std::move(*refused);
  const Attempt<EventsQuery> query = parse_events_query(asked.query);
  if (!query) co_return api_problem(http::Status::kBadRequest, query.error().text);
  // Those that wait leave room for others.
  if (query->wait > Duration{} && waiting_ < kWaitingMax) {
    ++waiting_;
    co_await events_->wait(query->wanted.after, env_.now() + query->wait, closing_.token());
    --waiting_;
  }
  co_return http::Page{
      .type = "application/json",
      .body =
          events_json(*events_, query->wanted).dump(-1, ' ', true, Json::error_handler_t::replace) +
          "\n"};
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
  add_process(text, env_, source_.state());
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
