// SPDX-License-Identifier: Apache-2.0
#include "snis/iteration.h"

#include <algorithm>
#include <cstdlib>

namespace cairn::snis {

Iteration iterate(const Models& models, std::span<const trace::Record> requests, Storage& storage,
                  const Iteration* before, const std::function<void(double)>& told) {
  Iteration now{.times = Times(requests.size()), .network = {}};
  Times& t = now.times;
  for (size_t i = 0; i < requests.size(); ++i) {
    const trace::Record& request = requests[i];
    t.storage_arrival[i] = request.arrival;
    if (!request.write || before == nullptr) continue;
    const Picos brought = before->times.network_departure[i];
    t.storage_arrival[i] = brought == kNever ? kNever : storage_time(brought);
  }
  t.storage_departure = storage.run(t.storage_arrival);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Nanos from = requests[i].write ? requests[i].arrival : t.storage_departure[i];
    t.network_arrival[i] = from == kNever ? kNever : network_time(from);
  }
  Carried carried = run_network(models, requests, t.network_arrival, told);
  t.network_departure = std::move(carried.departures);
  now.network = std::move(carried.facts);
  return now;
}

Movement movement(std::span<const trace::Record> requests, const Times& before,
                  const Times& after) {
  Movement found;
  uint64_t writes = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].write) continue;
    ++writes;
    const Nanos was = before.storage_arrival[i];
    const Nanos is = after.storage_arrival[i];
    if (was == is) continue;
    ++found.moved;
    found.first_ns = std::min({found.first_ns, was, is});
    if (was == kNever || is == kNever) continue;
    found.mean_abs_ns += static_cast<double>(std::abs(is - was));
    found.max_abs_ns = std::max(found.max_abs_ns, std::abs(is - was));
  }
  if (writes > 0) found.mean_abs_ns /= static_cast<double>(writes);
  return found;
}

Differences differences(std::span<const trace::Record> requests, const Times& one,
                        const Times& other) {
  Differences found;
  for (size_t i = 0; i < requests.size(); ++i) {
    const bool same = one.storage_arrival[i] == other.storage_arrival[i] &&
                      one.storage_departure[i] == other.storage_departure[i] &&
                      one.network_arrival[i] == other.network_arrival[i] &&
                      one.network_departure[i] == other.network_departure[i];
    if (same) continue;
    ++found.requests;
    const auto done = [&](const Times& times) {
      return requests[i].write ? static_cast<double>(times.storage_departure[i])
                               : static_cast<double>(times.network_departure[i]) * 1e-3;
    };
    const double apart = std::abs(done(one) - done(other));
    found.mean_abs_ns += apart;
    found.max_abs_ns = std::max(found.max_abs_ns, apart);
  }
  if (!requests.empty()) found.mean_abs_ns /= static_cast<double>(requests.size());
  return found;
}

}  // namespace cairn::snis
