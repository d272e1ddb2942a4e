// SPDX-License-Identifier: Apache-2.0
#include "model/net/fair_shares.h"

#include <algorithm>
#include <queue>

namespace cairn::net {

void FairShares::fill(std::span<const std::span<const uint32_t>> paths,
                      std::span<const double> taken, std::vector<double>& rates) {
  free_.resize(capacity_.size());
  sharers_.resize(capacity_.size());
  flows_on_.resize(capacity_.size());
  for (const uint32_t link : used_) {
    flows_on_[link].clear();
    sharers_[link] = 0;
  }
  used_.clear();
  rates.assign(paths.size(), -1);
  for (uint32_t f = 0; f < paths.size(); ++f) {
    if (paths[f].empty()) rates[f] = 0;
    for (const uint32_t link : paths[f]) {
      if (sharers_[link]++ == 0) {
        used_.push_back(link);
        free_[link] = capacity_[link] - (taken.empty() ? 0 : taken[link]);
      }
      flows_on_[link].push_back(f);
    }
  }
  // The link with the smallest share fixes the rate of its flows; that only raises the others'
  // shares, so an entry whose share has grown since is put back.
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> tightest;
  for (const uint32_t link : used_) tightest.emplace(free_[link] / sharers_[link], link);
  while (!tightest.empty()) {
    const auto [share, link] = tightest.top();
    tightest.pop();
    if (sharers_[link] == 0) continue;
    const double now = free_[link] / sharers_[link];
    if (now > share * (1 + 1e-12)) {
      tightest.emplace(now, link);
      continue;
    }
    for (const uint32_t f : flows_on_[link]) {
      if (rates[f] >= 0) continue;
      rates[f] = now;
      for (const uint32_t other : paths[f]) {
        --sharers_[other];
        free_[other] = std::max(0.0, free_[other] - now);
      }
    }
  }
}

}  // namespace cairn::net
