// SPDX-License-Identifier: Apache-2.0
#include "server/up/up_source.h"

#include <utility>

#include "server/serve/metrics.h"

namespace cairn::server {

namespace {

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

ProcessState UpSource::state() {
  health_.look();
  return {.role = "up", .uptime = env_.now() - started_, .health = health_.worst()};
}

// No two of them have a family of one name.
task::Task<void> UpSource::tell_metrics(MetricsText& text) {
  if (server_ != nullptr) {
    ServerSource server(*server_);
    co_await server.tell_metrics(text);
  }
  if (arbiter_ != nullptr) co_await arbiter_->tell_metrics(text);
  if (keys_ != nullptr) co_await keys_->tell_metrics(text);
}

task::Task<Wellness> UpSource::tell_health() {
  Json reasons = Json::array();
  for (const KnownCondition& each : health_.look()) reasons.push_back(condition_json(env_, each));
  const Json json = {{"schema_version", 1},
                     {"role", "up"},
                     {"health", drive::name(health_.worst())},
                     {"reasons", std::move(reasons)}};
  co_return Wellness{.health = health_.worst(), .json = text_of(json)};
}

task::Task<std::string> UpSource::tell_status() { co_return text_of(status_()); }

}  // namespace cairn::server
