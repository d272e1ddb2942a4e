// SPDX-License-Identifier: Apache-2.0
// Mean and exact percentiles of a list of latencies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/histogram.h"

namespace cairn::plan {

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

// Latencies as they come, in bounded memory: exact up to kExactMax of them, percentiles within 1.6
// percent from then on.
class LatencyTally {
 public:
  static constexpr size_t kExactMax = 1U << 20;

  void add(int64_t latency);
  uint64_t count() const { return histogram_.count(); }
  LatencySummary summary() const;
  // The latencies that 1/points, 2/points, ... of all do not exceed; at most one for each.
  std::vector<double> quantiles(size_t points) const;

 private:
  bool is_exact() const { return histogram_.count() == exact_.size(); }

  std::vector<int64_t> exact_;
  Histogram histogram_;
};

}  // namespace cairn::plan
