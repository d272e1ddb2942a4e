// SPDX-License-Identifier: Apache-2.0
#include "env/connection_slots.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::env {

ConnectionSlots::Entry ConnectionSlots::enter(Slot& slot, const Address& from, Time now) {
  CHECK(!slot.is_in(), "a connection comes in once");
  if (connections_ >= limits_.connections_max) {
    return {.refused = "there are as many connections as there may be (connections_max)"};
  }
  const AddressKey key = key_of(from);
  const size_t reserved = std::min(limits_.reserved, limits_.connections_max / 2);
  if (connections_ >= limits_.connections_max - reserved && !known_.contains(key)) {
    return {.refused =
                "the connections that are left are for addresses from which somebody was let in "
                "before (connections_reserved)"};
  }
  Unproven& others = unproven_[key];
  Slot* evicted = nullptr;
  if (others.count >= limits_.unproven_max) {
    if (!may_evict(others, key, now)) {
      return {.refused =
                  "its address has as many connections that have proven nothing as it may "
                  "have (connections_unproven_max)"};
    }
    evicted = others.oldest_first.front();
    evicted->unlink();
    evicted->state_ = Slot::State::kLeaving;
    --others.count;
    ++others.leaving;
  }
  slot.state_ = Slot::State::kUnproven;
  slot.key_ = key;
  slot.since_ = now;
  others.oldest_first.push_back(slot);
  ++others.count;
  ++connections_;
  return {.evicted = evicted};
}

// Who is leaving still has memory, so that their number is bounded too.
bool ConnectionSlots::may_evict(Unproven& others, const AddressKey& key, Time now) const {
  const Slot* const oldest = others.oldest_first.front();
  if (oldest == nullptr || others.leaving >= limits_.unproven_max) return false;
  return known_.contains(key) || now - oldest->since_ >= kUnprovenTime;
}

ConnectionSlots::UnprovenAt ConnectionSlots::find_unproven(const Slot& slot) {
  const UnprovenAt found = unproven_.find(slot.key_);
  CHECK(found != unproven_.end(), "its address has connections");
  return found;
}

void ConnectionSlots::forget_if_empty(UnprovenAt at) {
  if (at->second.count == 0 && at->second.leaving == 0) unproven_.erase(at);
}

void ConnectionSlots::forget_unproven(Slot& slot) {
  const UnprovenAt found = find_unproven(slot);
  slot.unlink();
  --found->second.count;
  forget_if_empty(found);
}

void ConnectionSlots::prove(Slot& slot, Time now) {
  if (slot.state_ != Slot::State::kUnproven) return;
  forget_unproven(slot);
  slot.state_ = Slot::State::kProven;
  if (known_.size() >= kAddressesMax && !known_.contains(slot.key_)) {
    known_.erase(
        std::ranges::min_element(known_, {}, [](const auto& each) { return each.second.ns; }));
  }
  known_[slot.key_] = now;
}

void ConnectionSlots::leave(Slot& slot) {
  if (!slot.is_in()) return;
  if (slot.state_ == Slot::State::kUnproven) forget_unproven(slot);
  if (slot.state_ == Slot::State::kLeaving) {
    const UnprovenAt found = find_unproven(slot);
    --found->second.leaving;
    forget_if_empty(found);
  }
  slot.state_ = Slot::State::kOut;
  --connections_;
}

}  // namespace cairn::env
