// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <fmt/format.h>

#include <iterator>

namespace cairn {

std::string text(Duration duration) {
  const char* sign = duration.ns < 0 ? "-" : "";
  const double ns = duration.ns < 0 ? -static_cast<double>(duration.ns) : duration.ns;
  if (ns < 1e3) return fmt::format("{}{:.0f} ns", sign, ns);
  if (ns < 1e6) return fmt::format("{}{:.3g} us", sign, ns / 1e3);
  if (ns < 1e9) return fmt::format("{}{:.3g} ms", sign, ns / 1e6);
  return fmt::format("{}{:.4g} s", sign, ns / 1e9);
}

std::string text_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

}  // namespace cairn
