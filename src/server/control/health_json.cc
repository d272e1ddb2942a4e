// SPDX-License-Identifier: Apache-2.0
#include "server/control/health_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace cairn::server {

namespace {

using Type = MetricsText::Type;

uint64_t number_of(std::string_view word) {
  if (word == "failing") return 2;
  return word == "degraded" ? 1 : 0;
}

Json reason_json(const drive::HealthReason& reason) {
  Json json = {{"health", name(reason.health)}, {"code", reason.code}};
  if (!reason.layer.empty()) {
    json["path"] = reason.path;
    json["layer"] = reason.layer;
  }
  if (!reason.below.empty()) {
    json["drive_path"] = reason.below_path;
    json["drive"] = reason.below;
  }
  json["what"] = reason.what;
  return json;
}

Json job_json(const drive::WatchedJob& job) {
  Json json = {{"name", job.job.name}, {"path", job.job.path},   {"layer", job.job.layer},
               {"done", job.job.done}, {"total", job.job.total}, {"percent", job.percent}};
  if (job.left) json["left_s"] = static_cast<uint64_t>(*job.left / 1_s);
  return json;
}

}  // namespace

std::string last_line(std::string_view problem) {
  const size_t line = problem.rfind('\n');
  if (line != std::string_view::npos) problem.remove_prefix(line + 1);
  const size_t text = problem.find_first_not_of(" ^");
  return std::string(text == std::string_view::npos ? problem : problem.substr(text));
}

drive::StackHealth not_open(std::string_view problem, std::string_view next) {
  drive::StackHealth health{.health = drive::Health::kFailing};
  health.reasons.push_back({.health = drive::Health::kFailing,
                            .code = "not_open",
                            .what = fmt::format("{}; {}", last_line(problem), next)});
  return health;
}

config::LogLevel level_of(drive::Health health) {
  switch (health) {
    case drive::Health::kOk:
      return config::LogLevel::kInfo;
    case drive::Health::kDegraded:
      return config::LogLevel::kWarn;
    case drive::Health::kFailing:
      return config::LogLevel::kError;
  }
  return config::LogLevel::kError;
}

Json health_json(const drive::WatchedDrive* drive) {
  Json reasons = Json::array();
  Json jobs = Json::array();
  if (drive != nullptr) {
    for (const drive::HealthReason& one : drive->now.reasons) reasons.push_back(reason_json(one));
    for (const drive::WatchedJob& one : drive->jobs) jobs.push_back(job_json(one));
  }
  const drive::Health health = drive == nullptr ? drive::Health::kOk : drive->now.health;
  return {{"health", name(health)}, {"reasons", std::move(reasons)}, {"jobs", std::move(jobs)}};
}

std::string worst_health(const std::vector<Json>& drives) {
  std::string worst(name(drive::Health::kOk));
  for (const Json& each : drives) {
    const std::string word = text_at(each, "health");
    if (number_of(word) > number_of(worst)) worst = word;
  }
  return worst;
}

std::string health_lines(const Json& drive) {
  std::string text;
  const auto of_layer = [](const Json& json) {
    if (text_at(json, "layer").empty()) return std::string();
    return fmt::format("{} (layer {}): ", text_at(json, "layer"), text_at(json, "path"));
  };
  for (const Json& one : list_at(drive, "reasons")) {
    const std::string about = text_at(one, "drive");
    text += fmt::format("{}: {}{}{}\n", text_at(one, "health"), of_layer(one),
                        about.empty() ? "" : about + ": ", text_at(one, "what"));
  }
  for (const Json& one : list_at(drive, "jobs")) {
    std::string left = "it does not go on";
    if (one.contains("left_s")) {
      left =
          fmt::format("{} left", cairn::text(1_s * static_cast<int64_t>(number_at(one, "left_s"))));
    }
    text += fmt::format("job: {}{} {}% of {}, {}\n", of_layer(one), text_at(one, "name"),
                        number_at(one, "percent"), text_bytes(number_at(one, "total")), left);
  }
  return text;
}

void add_health(MetricsText& text, const std::vector<Json>& drives) {
  text.family(Type::kGauge, "cairn_drive_health",
              "How well a drive is: 0 ok, 1 degraded, 2 failing.");
  for (const Json& drive : drives) {
    text.sample({{"drive", text_at(drive, "name")}}, number_of(text_at(drive, "health")));
  }
  text.family(Type::kGauge, "cairn_drive_concern",
              "A reason why a drive is not well: 1 degraded, 2 failing; 0 is worth knowing.");
  for (const Json& drive : drives) {
    for (const Json& one : list_at(drive, "reasons")) {
      text.sample({{"drive", text_at(drive, "name")},
                   {"path", text_at(one, "path")},
                   {"layer", text_at(one, "layer")},
                   {"code", text_at(one, "code")},
                   {"below", text_at(one, "drive_path")}},
                  number_of(text_at(one, "health")));
    }
  }
  const auto for_each_job = [&](const auto& visit) {
    for (const Json& drive : drives) {
      for (const Json& one : list_at(drive, "jobs")) {
        visit(MetricsText::Labels{{"drive", text_at(drive, "name")},
                                  {"path", text_at(one, "path")},
                                  {"layer", text_at(one, "layer")},
                                  {"job", text_at(one, "name")}},
              one);
      }
    }
  };
  text.family(Type::kGauge, "cairn_drive_job_done_ratio",
              "How much of a layer's own work is done, from 0 to 1.");
  for_each_job([&](MetricsText::Labels labels, const Json& one) {
    text.ratio(labels, number_at(one, "done"), number_at(one, "total"));
  });
  text.family(Type::kGauge, "cairn_drive_job_left_seconds",
              "How long that work still takes at its present rate.");
  for_each_job([&](MetricsText::Labels labels, const Json& one) {
    if (one.contains("left_s")) text.sample(labels, number_at(one, "left_s"));
  });
}

}  // namespace cairn::server
