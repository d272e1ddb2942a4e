// SPDX-License-Identifier: Apache-2.0
// Times: when each request came to and left storage and network, by its number.
#pragma once

#include <vector>

#include "snis/models.h"

namespace cairn::snis {

// kNever for what did not happen: a request that a simulator lost.
struct Times {
  std::vector<Nanos> storage_arrival;
  std::vector<Nanos> storage_departure;
  std::vector<Picos> network_arrival;
  std::vector<Picos> network_departure;

  Times() = default;
  explicit Times(size_t requests)
      : storage_arrival(requests, kNever),
        storage_departure(requests, kNever),
        network_arrival(requests, kNever),
        network_departure(requests, kNever) {}
  size_t size() const { return storage_arrival.size(); }

  friend bool operator==(const Times&, const Times&) = default;
};

}  // namespace cairn::snis
