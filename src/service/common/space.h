// SPDX-License-Identifier: Apache-2.0
// Space: which units of a drive are in use, for services that place data where there is room.
//
// A unit is free, used, or on its way back: given up by a record of a journal, and not to be used
// again before that record is durable (journal.h). Taking is next-fit, so that what is written
// together lies together. Giving a unit that is not in use is an error and changes nothing: no unit
// has two owners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/error.h"

namespace cairn::drive {

class Space {
 public:
  explicit Space(uint64_t units);

  uint64_t units() const { return units_; }
  uint64_t free() const { return free_; }
  uint64_t used() const { return units_ - free_ - on_their_way_; }
  uint64_t on_their_way() const { return on_their_way_; }
  bool is_used(uint64_t unit) const { return unit < units_ && bit(used_, unit); }
  // The first free unit from `from` on, with those that follow it: `max` at most. None: count 0.
  struct Run {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  Run free_run(uint64_t from, uint64_t max) const;

  // `count` units that follow each other, used from now on: the first. None: nowhere are so many.
  std::optional<uint64_t> take(uint64_t count = 1);
  // This one; for replay, whose units come from a drive. kCorrupt: there is no such unit, or it has
  // an owner.
  Result<void> claim(uint64_t unit);
  // Free at once. kInvalid: it is not in use.
  Result<void> give(uint64_t unit);

  // Free once it was returned by come_back(). kInvalid: it is not in use.
  Result<void> give_after(uint64_t unit, uint64_t record);
  // A unit whose record is durable, oldest first: it is used again, by the caller, who gives it
  // when it has cleaned it up, by a discard for instance. None: there is none yet.
  std::optional<uint64_t> come_back(uint64_t durable);

 private:
  using Bits = std::vector<uint64_t>;
  static bool bit(const Bits& bits, uint64_t unit) {
    return (bits[unit / 64] >> unit % 64 & 1) != 0;
  }
  static void set(Bits& bits, uint64_t unit) { bits[unit / 64] |= uint64_t{1} << unit % 64; }
  static void clear(Bits& bits, uint64_t unit) { bits[unit / 64] &= ~(uint64_t{1} << unit % 64); }
  // The first run of free units that begins in [from, to).
  std::optional<uint64_t> find(uint64_t from, uint64_t to, uint64_t count) const;

  struct Given {
    uint64_t unit = 0;
    uint64_t record = 0;
  };

  uint64_t units_;
  uint64_t free_;
  uint64_t on_their_way_ = 0;
  uint64_t next_ = 0;  // where the next search begins
  Bits taken_;         // used or on their way
  Bits used_;
  std::deque<Given> given_;  // by record
};

}  // namespace cairn::drive
