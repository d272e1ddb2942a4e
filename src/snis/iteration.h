// SPDX-License-Identifier: Apache-2.0
// One iteration of the SNIS paper (section III-C): all requests through storage, then all through
// the network.
//
//   SA_i(r) = A(r)          reads     NA_i(r) = SD_i(r)  reads    (1)
//   SA_i(r) = ND_{i-1}(r)   writes    NA_i(r) = A(r)     writes   (2)
//
// In iteration 0 writes come to storage at A(r), because no network pass was before.
#pragma once

#include <functional>
#include <span>

#include "snis/phases.h"
#include "snis/times.h"

namespace cairn::snis {

struct Iteration {
  Times times;
  NetworkFacts network;

  friend bool operator==(const Iteration&, const Iteration&) = default;
};

// `before` is null for iteration 0. `told` as run_network's.
Iteration iterate(const Models& models, std::span<const trace::Record> requests, Storage& storage,
                  const Iteration* before, const std::function<void(double)>& told = {});

// How much storage arrivals of writes moved between two iterations. When none did, every later
// iteration is the same: the fixed point, which is what one coupled loop gives.
struct Movement {
  uint64_t moved = 0;
  double mean_abs_ns = 0;  // over all writes
  Nanos max_abs_ns = 0;
  Nanos first_ns = kNever;  // the earliest arrival that is not what it was
};
Movement movement(std::span<const trace::Record> requests, const Times& before, const Times& after);

// How far two results of the same requests are apart. A request is done when it went all its way:
// a read when the network carried it, a write when its drive served it.
struct Differences {
  uint64_t requests = 0;   // of which any time differs
  double mean_abs_ns = 0;  // of when they are done, over all requests
  double max_abs_ns = 0;
};
Differences differences(std::span<const trace::Record> requests, const Times& one,
                        const Times& other);

}  // namespace cairn::snis
