// SPDX-License-Identifier: Apache-2.0
#include "apps/up/status_text.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/table.h"
#include "base/units.h"
#include "base/words.h"
#include "server/events/event_format.h"

namespace cairn::apps {

namespace {

using server::Json;

// "drive d2".
std::string subject_text(const Json& reason) {
  return fmt::format("{} {}", escaped(server::text_at(reason, "kind")),
                     escaped(server::text_at(reason, "subject")));
}

// "for 3 s, 40% done, 5 s left".
std::string progress_text(const Json& reason) {
  std::string text = "for " + age_text(server::number_at(reason, "since_s"));
  if (reason.contains("percent")) {
    text += fmt::format(", {}% done", server::number_at(reason, "percent"));
  }
  if (reason.contains("left_s")) {
    text += fmt::format(", {} left", age_text(server::number_at(reason, "left_s")));
  }
  return text;
}

std::string drives_text(const Json& status) {
  std::vector<std::vector<std::string>> rows = {{"DRIVE", "STATE", "SIZE", "USED"}};
  for (const Json& each : server::list_at(status, "drives")) {
    rows.push_back({server::text_at(each, "name"), server::text_at(each, "state"),
                    text_bytes(server::number_at(each, "bytes")),
                    text_bytes(server::number_at(each, "used_bytes"))});
  }
  return table_text(rows);
}

std::string volumes_text(const Json& status) {
  std::vector<std::vector<std::string>> rows = {{"VOLUME", "SIZE", "COPIES", "WRITTEN", "LACKING"}};
  for (const Json& each : server::list_at(status, "volumes")) {
    rows.push_back({escaped(server::text_at(each, "name")),
                    text_bytes(server::number_at(each, "bytes")),
                    fmt::format("{}", server::number_at(each, "replicas")),
                    text_bytes(server::number_at(each, "mapped_bytes")),
                    text_bytes(server::number_at(each, "lacking_bytes"))});
  }
  return table_text(rows);
}

std::string doors_text(const Json& status) {
  const auto at = status.find("at");
  if (at == status.end()) return "";
  std::vector<std::vector<std::string>> rows = {{"DOOR", "AT"}};
  for (const auto& [key, name] : {std::pair{"nbd", "NBD"}, std::pair{"nvme", "NVMe/TCP"},
                                  std::pair{"resp", "Redis"}, std::pair{"http", "HTTP"}}) {
    for (const Json& each : server::list_at(*at, key)) {
      if (each.is_string()) rows.push_back({name, escaped(each.get<std::string>())});
    }
  }
  return table_text(rows);
}

std::string lately_text(const Json& status) {
  std::string text;
  for (const Json& each : server::list_at(status, "lately")) {
    const auto event = server::decode_event(each.dump());
    if (!event) continue;
    text += fmt::format("  {} {}\n", server::time_text(event->time), escaped(event_line(*event)));
  }
  return text.empty() ? text : "LATELY ('cairn events' has all)\n" + text;
}

}  // namespace

std::string age_text(uint64_t seconds) {
  struct Unit {
    uint64_t seconds;
    std::string_view name;
  };
  static constexpr std::array<Unit, 4> kUnits = {
      {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}}};
  for (size_t i = 0; i + 1 < kUnits.size(); ++i) {
    const Unit& unit = kUnits.at(i);
    const Unit& smaller = kUnits.at(i + 1);
    if (seconds < unit.seconds) continue;
    const uint64_t rest = seconds % unit.seconds / smaller.seconds;
    std::string text = fmt::format("{} {}", seconds / unit.seconds, unit.name);
    if (rest > 0) text += fmt::format(" {} {}", rest, smaller.name);
    return text;
  }
  return fmt::format("{} s", seconds);
}

std::string up_reason_text(const Json& reason) {
  return fmt::format("{}: {}: {} ({})", server::text_at(reason, "health"), subject_text(reason),
                     escaped(server::text_at(reason, "what")), progress_text(reason));
}

std::string up_status_text(const Json& status) {
  std::string text = server::text_at(status, "health") + "\n";
  for (const Json& reason : server::list_at(status, "reasons")) {
    text += fmt::format("  {}: {}: {}\n    {}\n    {}\n", server::text_at(reason, "health"),
                        subject_text(reason), escaped(server::text_at(reason, "what")),
                        progress_text(reason), escaped(server::text_at(reason, "action")));
  }
  for (const std::string& part :
       {drives_text(status), volumes_text(status), doors_text(status), lately_text(status)}) {
    if (!part.empty()) text += "\n" + part;
  }
  return text;
}

}  // namespace cairn::apps
