// SPDX-License-Identifier: Apache-2.0
#include "apps/duration.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "apps/words.h"

namespace cairn::apps {

Attempt<Duration> parse_duration(std::string_view text) {
  static constexpr std::pair<std::string_view, Duration> kUnits[] = {
      {"ms", 1_ms}, {"s", 1_s}, {"m", 60_s}, {"h", 3600_s}};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view word = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& [unit, length] : kUnits) {
    if (error != std::errc{} || word != unit) continue;
    if (number < 1 || number > 24 * 3600_s / length) break;
    return number * length;
  }
  return refuse(fmt::format("{} is not a time from 1ms to 24h: write something like 500ms or 10s",
                            in_quotes(text)));
}

}  // namespace cairn::apps
