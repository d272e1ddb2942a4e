// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/uri_duration.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace cairn::fabric {

namespace {

constexpr Duration kDurationMax = int64_t{366} * 24 * 3600_s;

struct Unit {
  std::string_view name;
  Duration size;
};
constexpr std::array kUnits = {Unit{"us", 1_us}, Unit{"ms", 1_ms}, Unit{"m", 60_s}, Unit{"s", 1_s}};

}  // namespace

std::optional<Duration> parse_uri_duration(std::string_view text) {
  if (text == "0") return 0_s;
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const std::string_view number = text.substr(0, text.size() - unit.name.size());
    uint64_t count = 0;
    const auto [end, error] = std::from_chars(number.begin(), number.end(), count);
    if (error != std::errc{} || end != number.end()) return std::nullopt;
    if (count > static_cast<uint64_t>(kDurationMax / unit.size)) return std::nullopt;
    return static_cast<int64_t>(count) * unit.size;
  }
  return std::nullopt;
}

std::string uri_duration_text(Duration duration) {
  if (duration == Duration::max()) return "never";
  if (duration == 0_s) return "0";
  for (const Duration size : {1_s, 1_ms, 1_us}) {
    if (duration.ns % size.ns != 0) continue;
    return fmt::format("{}{}", duration / size, size == 1_s ? "s" : size == 1_ms ? "ms" : "us");
  }
  return fmt::format("{}us", duration / 1_us);
}

}  // namespace cairn::fabric
