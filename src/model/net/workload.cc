// SPDX-License-Identifier: Apache-2.0
#include "model/net/workload.h"

#include <numeric>
#include <utility>

#include "base/rng.h"

namespace cairn::net {

std::vector<Flow> incast(uint32_t hosts, uint64_t bytes, Picos start) {
  std::vector<Flow> flows;
  for (uint32_t i = 1; i < hosts; ++i) {
    flows.push_back({.tag = i - 1, .source = i, .destination = 0, .bytes = bytes, .start = start});
  }
  return flows;
}

std::vector<Flow> permutation(uint32_t hosts, uint64_t bytes, Picos start, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint32_t> order(hosts);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = hosts - 1; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < hosts; ++i) {
    flows.push_back({.tag = i,
                     .source = order[i],
                     .destination = order[(i + 1) % hosts],
                     .bytes = bytes,
                     .start = start});
  }
  return flows;
}

}  // namespace cairn::net
