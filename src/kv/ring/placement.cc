// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/placement.h"

#include <algorithm>
#include <string>

#include "base/rng.h"

namespace cairn::kv::ring {

namespace {

// How little two members should keep the same keys: not at all, then on one machine, in one rack.
int closeness(const Member& one, const Member& other) {
  if (!one.location.machine.empty() && one.location.machine == other.location.machine) return 2;
  return !one.location.rack.empty() && one.location.rack == other.location.rack ? 1 : 0;
}

}  // namespace

Placement::Placement(const std::vector<Member>& members) : members_(members) {
  for (size_t i = 0; i < members_.size(); ++i) {
    for (uint64_t token = 0; token < uint64_t{members_[i].drives} * kTokensPerDrive; ++token) {
      tokens_.push_back({.at = mix64(mix64(members_[i].id.value()) ^ token), .member = i});
    }
  }
  std::ranges::sort(tokens_, [this](const Token& a, const Token& b) {
    return std::pair(a.at, members_[a.member].id) < std::pair(b.at, members_[b.member].id);
  });
  // Two in one place: the range has one end.
  const auto same = std::ranges::unique(tokens_, {}, &Token::at);
  tokens_.erase(same.begin(), same.end());
}

std::vector<uint64_t> Placement::ends() const {
  std::vector<uint64_t> ends;
  for (const Token& each : tokens_) ends.push_back(each.at);
  return ends;
}

bool Placement::is_end(uint64_t token) const {
  return std::ranges::binary_search(tokens_, token, {}, &Token::at);
}

std::vector<MemberId> Placement::owners(uint64_t end, size_t count) const {
  std::vector<size_t> in_order;  // members, by their first token from there on
  std::vector<bool> is_in(members_.size());
  const auto first = std::ranges::lower_bound(tokens_, end, {}, &Token::at) - tokens_.begin();
  for (size_t i = 0; i < tokens_.size() && in_order.size() < members_.size(); ++i) {
    const size_t member = tokens_[(static_cast<size_t>(first) + i) % tokens_.size()].member;
    if (!is_in[member]) in_order.push_back(member);
    is_in[member] = true;
  }
  std::vector<MemberId> owners;
  std::vector<size_t> chosen;
  while (owners.size() < count && !in_order.empty()) {
    const auto cost = [&](size_t member) {
      int worst = 0;
      for (const size_t other : chosen) {
        worst = std::max(worst, closeness(members_[member], members_[other]));
      }
      return worst;
    };
    const auto best = std::ranges::min_element(in_order, {}, cost);  // the first of the best
    chosen.push_back(*best);
    owners.push_back(members_[*best].id);
    in_order.erase(best);
  }
  return owners;
}

}  // namespace cairn::kv::ring
