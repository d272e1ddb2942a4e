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
    Slot* const oldest = others.oldest_first.front();
    if (oldest == nullptr || now - oldest->since_ < kPatience) {
      return {.refused =
                  "its address has as many connections that have proven nothing as it may "
                  "have (connections_unproven_max)"};
    }
    oldest->unlink();
    oldest->state_ = Slot::State::kLeaving;
    --others.count;
    evicted = oldest;
  }
  slot.state_ = Slot::State::kUnproven;
  slot.key_ = key;
  slot.since_ = now;
  others.oldest_first.push_back(slot);
  ++others.count;
  ++connections_;
  return {.evicted = evicted};
}

void ConnectionSlots::forget_unproven(Slot& slot) {
  const auto found = unproven_.find(slot.key_);
  CHECK(found != unproven_.end(), "its address has connections");
  slot.unlink();
  if (--found->second.count == 0) unproven_.erase(found);
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
  slot.state_ = Slot::State::kOut;
  --connections_;
}

}  // namespace cairn::env
