// SPDX-License-Identifier: Apache-2.0
#include "server/monitor/api_query.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "base/words.h"

namespace cairn::server {

namespace {

constexpr uint64_t kCountMax = 1000;
constexpr uint64_t kWaitMax = 25;

std::optional<uint64_t> number(std::string_view text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < min || value > max) return std::nullopt;
  return value;
}

// "2026-11-19T20%3A00%3A00Z": nothing else needs it, so no other letter is written so.
std::string without_percents(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("%3A") || text.starts_with("%3a")) {
      out += ':';
      text.remove_prefix(3);
    } else if (text.starts_with("%2B") || text.starts_with("%2b")) {
      out += '+';
      text.remove_prefix(3);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

Problem wrong(std::string_view name, std::string_view value, std::string_view expected) {
  return {fmt::format("{} is no {}: {}", in_quotes(value), name, expected)};
}

}  // namespace

Attempt<EventsQuery> parse_events_query(std::string_view query) {
  EventsQuery asked;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = equals == pair.npos ? "" : pair.substr(equals + 1);
    std::optional<uint64_t> found;
    if (name == "after") {
      found = number(value, 0, kEventIdMax);
      if (found) asked.wanted.after = *found;
      if (!found) return std::unexpected(wrong(name, value, "write the id of an event"));
    } else if (name == "count") {
      found = number(value, 1, kCountMax);
      if (found) asked.wanted.count_max = *found;
      if (!found) return std::unexpected(wrong(name, value, "write 1 to 1000"));
    } else if (name == "wait") {
      found = number(value, 0, kWaitMax);
      if (found) asked.wait = static_cast<int64_t>(*found) * 1_s;
      if (!found) return std::unexpected(wrong(name, value, "write 0 to 25, in seconds"));
    } else if (name == "since") {
      const std::optional<WallTime> time = parse_time(without_percents(value));
      if (!time) return std::unexpected(wrong(name, value, "write 2026-11-19T20:00:00Z"));
      asked.wanted.since = *time;
    } else {
      return refuse(
          fmt::format("there is no {} here, but after, count, since and wait", in_quotes(name)));
    }
  }
  return asked;
}

}  // namespace cairn::server
