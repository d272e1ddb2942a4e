// SPDX-License-Identifier: Apache-2.0
// What an iteration means to users: throughput as the paper defines it, delays, and the distance
// between two iterations.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "snis/iteration.h"

namespace cairn::snis {

// Percentiles lie between their two neighbours in proportion. All zero of no values.
struct Distribution {
  uint64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};
Distribution distribution(std::vector<double> values);

// Of requests that went all their way. Delays in nanoseconds.
struct Delays {
  Distribution storage;
  Distribution network;
  Distribution total;  // storage and network
};

struct Metrics {
  Distribution throughput_gbps;  // of each request: its bits over its delays
  Delays read;
  Delays write;
  uint64_t unfinished = 0;
};
Metrics metrics(std::span<const trace::Record> requests, const Times& times);

// In order of requests; those that did not go all their way are left out.
std::vector<double> throughputs_gbps(std::span<const trace::Record> requests, const Times& times);

// Equation 4: |x - y| / max(x, y); 0 when both are.
double relative_distance(double x, double y);

// Distances of mean, median and 90th percentile of throughput, and their weighted sum: equation 3.
struct Distance {
  double mean = 0;
  double median = 0;
  double p90 = 0;
  double criterion = 0;
};
using Weights = std::array<double, 3>;
inline constexpr Weights kEqualWeights = {1.0 / 3, 1.0 / 3, 1.0 / 3};
Distance distance(const Metrics& before, const Metrics& after, const Weights& weights);

}  // namespace cairn::snis
