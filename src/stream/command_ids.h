// SPDX-License-Identifier: Apache-2.0
// CommandIds: which command ids of a queue are in use.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"

namespace cairn::stream {

// A hash table of fixed size: at most `capacity` ids at once, a few bytes each. Open addressing; a
// removal closes its gap, so that a search ends at the first empty place.
class CommandIds {
 public:
  explicit CommandIds(size_t capacity) { reserve(capacity); }

  // Room for more.
  void reserve(size_t capacity) {
    const std::vector<uint32_t> old =
        std::exchange(places_, std::vector<uint32_t>(std::bit_ceil(capacity * 2), kEmpty));
    count_ = 0;
    for (const uint32_t id : old) {
      if (id != kEmpty) add(static_cast<uint16_t>(id));
    }
  }
  // False: it is in use already.
  bool add(uint16_t id) {
    const size_t place = find(id);
    if (places_[place] == id) return false;
    CHECK(count_ * 2 < places_.size(), "no more ids than there are commands");
    places_[place] = id;
    ++count_;
    return true;
  }
  void remove(uint16_t id) {
    size_t gap = find(id);
    CHECK(places_[gap] == id, "the id is in use");
    --count_;
    // Whoever was pushed behind the gap by it moves forward.
    for (size_t at = next(gap); places_[at] != kEmpty; at = next(at)) {
      const size_t home = home_of(static_cast<uint16_t>(places_[at]));
      const bool may_move = ((at - home) & mask()) >= ((at - gap) & mask());
      if (!may_move) continue;
      places_[gap] = places_[at];
      gap = at;
    }
    places_[gap] = kEmpty;
  }
  bool contains(uint16_t id) const { return places_[find(id)] == id; }
  size_t size() const { return count_; }
  // Bytes that a table for so many takes besides itself.
  static size_t memory(size_t capacity) { return std::bit_ceil(capacity * 2) * sizeof(uint32_t); }

 private:
  static constexpr uint32_t kEmpty = 1 << 16;

  size_t mask() const { return places_.size() - 1; }
  size_t next(size_t place) const { return (place + 1) & mask(); }
  // Ids are often consecutive, or differ in their upper bits alone.
  size_t home_of(uint16_t id) const { return (id ^ (id >> 7)) & mask(); }
  // Where it is, or the empty place where it belongs.
  size_t find(uint16_t id) const {
    size_t place = home_of(id);
    while (places_[place] != kEmpty && places_[place] != id) place = next(place);
    return place;
  }

  std::vector<uint32_t> places_;
  size_t count_ = 0;
};

}  // namespace cairn::stream
