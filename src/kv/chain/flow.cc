// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/flow.h"

#include <algorithm>
#include <set>

namespace cairn::kv::chain {

using ring::MemberId;
using task::CancelToken;
using task::Task;

namespace {

constexpr uint32_t kProbeDoublingsMax = 5;
constexpr size_t kNodesMax = 1024;  // remembered; a cluster has fewer

size_t at(Flow::Kind kind) { return static_cast<size_t>(kind); }

}  // namespace

uint32_t Flow::tokens(MemberId member) const {
  const auto found = nodes_.find(member);
  return found == nodes_.end() ? 0 : found->second.tokens;
}

// Peers has so many places for calls; the preferred node is this one, which needs none.
bool Flow::may_be_asked(MemberId member, const Wanted& wanted) {
  const Node& node = nodes_[member];
  const bool has_place =
      wanted.preferred == member || node.under_way[at(wanted.kind)] < kCallsPerHop;
  return node.tokens >= wanted.cost && has_place;
}

// What is known of it is old: it may be better by now.
bool Flow::is_to_be_probed(const Node& node, Kind kind) const {
  if (node.under_way[at(kind)] > 0) return false;
  if (!node.heard) return true;
  const uint32_t doublings = std::min(node.failures, kProbeDoublingsMax);
  return env_.now() - *node.heard >= kProbeAfter * (1LL << doublings);
}

MemberId Flow::draw(std::span<const MemberId> from) { return from[env_.rng().below(from.size())]; }

std::optional<MemberId> Flow::choose(const Wanted& wanted, std::span<const MemberId> from) {
  std::vector<MemberId> probed;
  std::vector<MemberId> best;
  std::vector<MemberId> idle;
  const auto rank = [&](MemberId member) {
    const Node& node = nodes_[member];
    return std::pair(node.tokens, ~node.under_way[at(wanted.kind)]);
  };
  for (const MemberId member : from) {
    const Node& node = nodes_[member];
    const bool is_probe = is_to_be_probed(node, wanted.kind);
    const bool has_tokens = may_be_asked(member, wanted);
    if ((has_tokens || is_probe) && wanted.preferred == member) return member;
    if (is_probe) probed.push_back(member);
    if (has_tokens) {
      if (!best.empty() && rank(member) > rank(best.front())) best.clear();
      if (best.empty() || rank(member) == rank(best.front())) best.push_back(member);
    }
    if (node.under_way[at(wanted.kind)] > 0) continue;
    // Rather one that answered last time.
    if (!idle.empty() && node.failures < nodes_[idle.front()].failures) idle.clear();
    if (idle.empty() || node.failures == nodes_[idle.front()].failures) idle.push_back(member);
  }
  if (!probed.empty()) return draw(probed);
  if (!best.empty()) return draw(best);
  if (!idle.empty()) return draw(idle);
  return std::nullopt;
}

void Flow::begin(MemberId member, const Wanted& wanted) {
  Node& node = nodes_[member];
  ++node.under_way[at(wanted.kind)];
  node.tokens -= std::min(node.tokens, wanted.cost);
}

void Flow::end(MemberId member, Kind kind, std::optional<uint32_t> tokens) {
  Node& node = nodes_[member];
  --node.under_way[at(kind)];
  node.heard = env_.now();
  node.failures = tokens ? 0 : node.failures + 1;
  node.tokens = std::min(tokens.value_or(0), kBelievedMax);
  serve();
}

void Flow::serve() {
  // Whoever can go to one node only is not overtaken there by those who need less.
  std::set<MemberId> claimed;
  for (Waiting& each : waiting_) {
    if (each.granted) continue;
    std::vector<MemberId> from;
    for (const MemberId member : each.wanted.nodes) {
      if (!claimed.contains(member)) from.push_back(member);
    }
    const std::optional<MemberId> chosen = choose(each.wanted, from);
    if (chosen) {
      begin(*chosen, each.wanted);
      each.granted = chosen;
      each.moved.set();
    } else if (each.wanted.nodes.size() == 1) {
      claimed.insert(each.wanted.nodes.front());
    }
  }
}

Task<Result<Flow::Passage>> Flow::take(Wanted wanted, CancelToken token) {
  if (nodes_.size() > kNodesMax) {
    std::erase_if(nodes_, [](const auto& each) {
      return each.second.under_way == std::array<uint32_t, 2>{};
    });
  }
  if (!uses_tokens_) {
    const MemberId any = wanted.preferred.value_or(draw(wanted.nodes));
    begin(any, wanted);
    co_return Passage(*this, any, wanted.kind);
  }
  waiting_.emplace_back(wanted, std::nullopt);
  const auto mine = std::prev(waiting_.end());
  serve();
  if (!mine->granted) {
    [[maybe_unused]] const Result<void> moved = co_await mine->moved.wait(token);
  }
  const std::optional<MemberId> granted = mine->granted;
  waiting_.erase(mine);
  if (granted) co_return Passage(*this, *granted, wanted.kind);
  serve();  // what it claimed others may have
  co_return fail(token.error());
}

}  // namespace cairn::kv::chain
