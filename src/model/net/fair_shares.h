// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates: nobody can have more without taking from somebody who has less.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cairn::net {

// Flows over links, by progressive filling (Bertsekas and Gallager, Data Networks, section 6.5.2).
class FairShares {
 public:
  explicit FairShares(std::vector<double> capacities) : capacity_(std::move(capacities)) {}

  // `paths[f]` are the links of flow f; `taken` is what others need of each link beforehand, or
  // empty. `rates` gets one rate for each flow, in the unit of the capacities. A flow without links
  // gets none.
  void fill(std::span<const std::span<const uint32_t>> paths, std::span<const double> taken,
            std::vector<double>& rates);

 private:
  std::vector<double> capacity_;
  std::vector<double> free_;       // of links that are in use, while filling
  std::vector<uint32_t> sharers_;  // flows on the link that have no rate yet
  std::vector<std::vector<uint32_t>> flows_on_;
  std::vector<uint32_t> used_;  // links with flows
};

}  // namespace cairn::net
