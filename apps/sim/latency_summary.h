// SPDX-License-Identifier: Apache-2.0
// Mean and exact percentiles of a list of latencies.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::apps {

struct LatencySummary {
  uint64_t count = 0;
  double mean = 0;
  double min = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

// Percentiles lie between their two neighbours in proportion. Takes the list because it sorts it.
LatencySummary summarise(std::vector<int64_t> latencies);

}  // namespace cairn::apps
