// SPDX-License-Identifier: Apache-2.0
#include "snis/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cairn::snis {

namespace {

bool finished(const Times& times, size_t i) {
  return times.storage_arrival[i] != kNever && times.storage_departure[i] != kNever &&
         times.network_arrival[i] != kNever && times.network_departure[i] != kNever;
}
double storage_delay(const Times& times, size_t i) {
  return static_cast<double>(times.storage_departure[i] - times.storage_arrival[i]);
}
double network_delay(const Times& times, size_t i) {
  return static_cast<double>(times.network_departure[i] - times.network_arrival[i]) * 1e-3;
}

Delays delays(std::span<const trace::Record> requests, const Times& times, bool write) {
  std::vector<double> storage;
  std::vector<double> network;
  std::vector<double> total;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].write != write || !finished(times, i)) continue;
    storage.push_back(storage_delay(times, i));
    network.push_back(network_delay(times, i));
    total.push_back(storage.back() + network.back());
  }
  return {.storage = distribution(std::move(storage)),
          .network = distribution(std::move(network)),
          .total = distribution(std::move(total))};
}

}  // namespace

Distribution distribution(std::vector<double> values) {
  if (values.empty()) return {};
  // Summed before sorting, so that the mean does not depend on how equal values are ordered.
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  std::ranges::sort(values);
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
  };
  return {.count = values.size(),
          .mean = sum / static_cast<double>(values.size()),
          .p50 = at(0.5),
          .p90 = at(0.9),
          .p99 = at(0.99),
          .p999 = at(0.999),
          .max = values.back()};
}

std::vector<double> throughputs_gbps(std::span<const trace::Record> requests, const Times& times) {
  std::vector<double> all;
  all.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!finished(times, i)) continue;
    const double delay = storage_delay(times, i) + network_delay(times, i);
    all.push_back(8.0 * requests[i].bytes / std::max(delay, 1e-3));
  }
  return all;
}

Metrics metrics(std::span<const trace::Record> requests, const Times& times) {
  Metrics found{.throughput_gbps = distribution(throughputs_gbps(requests, times)),
                .read = delays(requests, times, false),
                .write = delays(requests, times, true)};
  found.unfinished = requests.size() - found.throughput_gbps.count;
  return found;
}

double relative_distance(double x, double y) {
  const double larger = std::max(x, y);
  return larger == 0 ? 0 : std::abs(x - y) / larger;
}

Distance distance(const Metrics& before, const Metrics& after, const Weights& weights) {
  const Distribution& x = after.throughput_gbps;
  const Distribution& y = before.throughput_gbps;
  Distance found{.mean = relative_distance(x.mean, y.mean),
                 .median = relative_distance(x.p50, y.p50),
                 .p90 = relative_distance(x.p90, y.p90)};
  found.criterion = weights[0] * found.mean + weights[1] * found.median + weights[2] * found.p90;
  return found;
}

}  // namespace cairn::snis
