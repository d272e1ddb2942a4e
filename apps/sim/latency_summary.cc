// SPDX-License-Identifier: Apache-2.0
#include "apps/sim/latency_summary.h"

#include <algorithm>
#include <numeric>

namespace cairn::apps {

LatencySummary summarise(std::vector<int64_t> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto at = [&](double fraction) {
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const double part = place - static_cast<double>(below);
    const size_t above = std::min(below + 1, values.size() - 1);
    return static_cast<double>(values[below]) * (1 - part) +
           static_cast<double>(values[above]) * part;
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {.count = values.size(),
          .mean = sum / static_cast<double>(values.size()),
          .min = static_cast<double>(values.front()),
          .p50 = at(0.5),
          .p90 = at(0.9),
          .p95 = at(0.95),
          .p99 = at(0.99),
          .p999 = at(0.999),
          .max = static_cast<double>(values.back())};
}

}  // namespace cairn::apps
