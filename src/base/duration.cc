// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "base/words.h"

namespace cairn {

namespace {

using Unit = std::pair<std::string_view, Duration>;

// A whole number of some unit, from 1 to so much in all.
std::optional<Duration> parse(std::string_view text, std::span<const Unit> units, Duration max) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view word = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& [unit, length] : units) {
    if (error != std::errc{} || word != unit) continue;
    if (number < 1 || number > max / length) break;
    return number * length;
  }
  return std::nullopt;
}

}  // namespace

Attempt<Duration> parse_duration(std::string_view text) {
  static constexpr Unit kUnits[] = {{"ms", 1_ms}, {"s", 1_s}, {"m", 60_s}, {"h", 3600_s}};
  if (const auto time = parse(text, kUnits, 24 * 3600_s)) return *time;
  return refuse(fmt::format("{} is not a time from 1ms to 24h: write something like 500ms or 10s",
                            in_quotes(text)));
}

Attempt<Duration> parse_short_duration(std::string_view text) {
  static constexpr Unit kUnits[] = {{"us", 1_us}, {"ms", 1_ms}};
  if (const auto time = parse(text, kUnits, 999_ms)) return *time;
  return refuse(fmt::format("{} is not a time from 1us to 999ms: write something like 50us or 2ms",
                            in_quotes(text)));
}

}  // namespace cairn
