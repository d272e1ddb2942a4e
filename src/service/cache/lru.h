// SPDX-License-Identifier: Apache-2.0
// Lru: which of a fixed number of slots holds which key, and which was used least recently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace cairn::drive {

// Slots are 0 to size - 1; what they hold is the owner's. Core-local.
class Lru {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit Lru(uint32_t slots) : nodes_(slots + 1), end_(slots) {
    CHECK(slots > 0 && slots < kNone);
    keys_.reserve(slots);
    nodes_[end_] = {.key = 0, .next = end_, .prev = end_, .is_used = false};
    for (uint32_t slot = slots; slot-- > 0;) link_last(slot);  // slot 0 is the first to be taken
  }

  // Without using it; kNone: no slot holds the key.
  uint32_t find(uint64_t key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? kNone : found->second;
  }
  void use(uint32_t slot) {
    unlink(slot);
    link_first(slot);
  }
  // The least recently used slot of those that `may_go`, empty ones first. kNone: none of the
  // oldest `looks` may.
  template <class F>
  uint32_t oldest(F may_go, uint32_t looks = UINT32_MAX) const {
    for (uint32_t slot = nodes_[end_].prev; slot != end_ && looks > 0; --looks) {
      if (may_go(slot)) return slot;
      slot = nodes_[slot].prev;
    }
    return kNone;
  }
  uint32_t oldest() const { return nodes_[end_].prev; }
  // The slot holds the key from now on, instead of what it held, and was used last.
  void put(uint32_t slot, uint64_t key) {
    if (nodes_[slot].is_used) keys_.erase(nodes_[slot].key);
    nodes_[slot].key = key;
    nodes_[slot].is_used = true;
    keys_[key] = slot;
    use(slot);
  }
  // It is empty, and the first to be taken.
  void drop(uint32_t slot) {
    if (!nodes_[slot].is_used) return;
    keys_.erase(nodes_[slot].key);
    nodes_[slot].is_used = false;
    unlink(slot);
    link_last(slot);
  }
  bool is_used(uint32_t slot) const { return nodes_[slot].is_used; }
  uint64_t key(uint32_t slot) const { return nodes_[slot].key; }
  uint32_t size() const { return end_; }
  size_t used() const { return keys_.size(); }

 private:
  struct Node {
    uint64_t key = 0;
    uint32_t next = 0;
    uint32_t prev = 0;
    bool is_used = false;
  };
  void unlink(uint32_t slot) {
    nodes_[nodes_[slot].prev].next = nodes_[slot].next;
    nodes_[nodes_[slot].next].prev = nodes_[slot].prev;
  }
  void link_between(uint32_t prev, uint32_t slot, uint32_t next) {
    nodes_[slot].prev = prev;
    nodes_[slot].next = next;
    nodes_[prev].next = slot;
    nodes_[next].prev = slot;
  }
  void link_first(uint32_t slot) { link_between(end_, slot, nodes_[end_].next); }
  void link_last(uint32_t slot) { link_between(nodes_[end_].prev, slot, end_); }

  std::unordered_map<uint64_t, uint32_t> keys_;
  std::vector<Node> nodes_;  // and one more, before the first and after the last
  const uint32_t end_;
};

}  // namespace cairn::drive
