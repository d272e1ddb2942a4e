// SPDX-License-Identifier: Apache-2.0
#include "plan/common/latency_summary.h"

#include <algorithm>
#include <numeric>

namespace cairn::plan {

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

void LatencyTally::add(int64_t latency) {
  if (exact_.size() < kExactMax) exact_.push_back(latency);
  histogram_.record(static_cast<uint64_t>(std::max<int64_t>(latency, 0)));
}

LatencySummary LatencyTally::summary() const {
  if (is_exact()) return summarise(exact_);
  const auto at = [&](double share) { return static_cast<double>(histogram_.percentile(share)); };
  return {.count = histogram_.count(),
          .mean = histogram_.mean(),
          .min = static_cast<double>(histogram_.min()),
          .p50 = at(0.5),
          .p90 = at(0.9),
          .p95 = at(0.95),
          .p99 = at(0.99),
          .p999 = at(0.999),
          .max = static_cast<double>(histogram_.max())};
}

std::vector<double> LatencyTally::quantiles(size_t points) const {
  std::vector<int64_t> sorted = is_exact() ? exact_ : std::vector<int64_t>{};
  std::ranges::sort(sorted);
  const size_t wanted = std::min<size_t>(points, count());
  std::vector<double> values;
  for (size_t i = 1; i <= wanted; ++i) {
    values.push_back(is_exact() ? static_cast<double>(sorted[i * sorted.size() / wanted - 1])
                                : static_cast<double>(histogram_.percentile(
                                      static_cast<double>(i) / static_cast<double>(wanted))));
  }
  return values;
}

}  // namespace cairn::plan
