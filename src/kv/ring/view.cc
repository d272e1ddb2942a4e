// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/view.h"

#include <algorithm>

#include "kv/ring/slot.h"

namespace cairn::kv::ring {

std::optional<size_t> RingRange::position(MemberId member) const {
  const auto found = std::ranges::find(chain, member, &Replica::member);
  if (found == chain.end()) return std::nullopt;
  return static_cast<size_t>(found - chain.begin());
}

std::optional<size_t> RingRange::read_tail() const {
  for (size_t i = chain.size(); i > 0; --i) {
    if (chain[i - 1].state == Replica::State::kRunning) return i - 1;
  }
  return std::nullopt;
}

std::optional<MemberId> RingRange::named() const {
  const auto found = std::ranges::find(chain, Replica::State::kRunning, &Replica::state);
  if (found == chain.end()) return std::nullopt;
  return found->member;
}

size_t RingRange::running() const {
  return static_cast<size_t>(std::ranges::count(chain, Replica::State::kRunning, &Replica::state));
}

const Member* View::member(MemberId id) const {
  const auto found = std::ranges::lower_bound(members, id, {}, &Member::id);
  return found == members.end() || found->id != id ? nullptr : &*found;
}

size_t View::range_index(uint64_t hash) const {
  const auto found = std::ranges::lower_bound(ranges, hash, {}, &RingRange::end);
  return found == ranges.end() ? 0 : static_cast<size_t>(found - ranges.begin());
}

uint64_t hash_of(std::string_view key) { return place_of_slot(slot_of(key)); }

}  // namespace cairn::kv::ring
