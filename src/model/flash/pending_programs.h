// SPDX-License-Identifier: Apache-2.0
// The user's programs that are on their way to flash: who waits for them, and which of their data
// is out of date before it arrives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "model/flash/parameters.h"
#include "model/flash/quirks.h"

namespace cairn::flash {

// Programs belong to epochs; whoever waits ends the epoch and falls with the last program of it and
// of all before it. Costs two additions per program.
class Barriers {
 public:
  // A program was asked for: its epoch, to be told to leave().
  uint32_t enter() {
    ++programs_.back();
    return first_ + static_cast<uint32_t>(programs_.size()) - 1;
  }
  void leave(uint32_t epoch) { --programs_[epoch - first_]; }

  // Ends the epoch: its number, for has_fallen().
  uint32_t raise() {
    const uint32_t epoch = first_ + static_cast<uint32_t>(programs_.size()) - 1;
    programs_.push_back(0);
    return epoch;
  }
  // Whether every program of the epoch and of those before it has ended.
  bool has_fallen(uint32_t epoch) {
    while (programs_.size() > 1 && programs_.front() == 0) {
      programs_.pop_front();
      ++first_;
    }
    return static_cast<int32_t>(epoch - first_) < 0;
  }

 private:
  std::deque<uint32_t> programs_ = {0};  // by epoch, from first_
  uint32_t first_ = 0;                   // wraps around
};

class PendingPrograms {
 public:
  explicit PendingPrograms(const Quirks& quirks) : quirks_(quirks) {}

  // Of data given to the drive: later data has a higher version.
  Nanos next_version() { return ++version_; }

  // A program's life: asked for (its epoch, for ended()), given a flash page, ended.
  uint32_t asked_for() {
    ++unplaced_;
    return barriers_.enter();
  }
  void placed() { --unplaced_; }
  void ended(uint32_t epoch) {
    barriers_.leave(epoch);
    if (!expiries_.empty()) forget_superseded();
  }

  // Ends the epoch, as Barriers does.
  uint32_t raise() { return barriers_.raise(); }
  bool has_fallen(uint32_t epoch) { return barriers_.has_fallen(epoch); }

  // Data of these sectors from before `version` that has no flash page yet must not come back.
  void supersede(uint32_t lpa, uint64_t sectors, Nanos version) {
    if (unplaced_ == 0 || quirks_.lets_older_data_win()) return;
    superseded_.emplace(lpa, Superseded{.version = version, .sectors = sectors});
    expiries_.push_back({.epoch = barriers_.raise(), .lpa = lpa, .version = version});
  }
  bool any_superseded() const { return !superseded_.empty(); }
  // Of the sectors of a page's data of that version, those that were not superseded.
  uint64_t still_wanted(uint32_t lpa, uint64_t sectors, Nanos version) const {
    const auto [first, last] = superseded_.equal_range(lpa);
    for (auto entry = first; entry != last; ++entry) {
      if (version < entry->second.version) sectors &= ~entry->second.sectors;
    }
    return sectors;
  }

  // Nothing is on its way any more.
  void clear() {
    barriers_ = {};
    unplaced_ = 0;
    superseded_.clear();
    expiries_.clear();
  }

 private:
  struct Superseded {
    Nanos version;
    uint64_t sectors;
  };
  struct Expiry {
    uint32_t epoch;
    uint32_t lpa;
    Nanos version;
  };

  void forget_superseded() {
    while (!expiries_.empty() && barriers_.has_fallen(expiries_.front().epoch)) {
      const Expiry expiry = expiries_.front();
      expiries_.pop_front();
      const auto [first, last] = superseded_.equal_range(expiry.lpa);
      const auto found = std::find_if(
          first, last, [&](const auto& entry) { return entry.second.version == expiry.version; });
      if (found != last) superseded_.erase(found);
    }
  }

  const Quirks quirks_;
  Barriers barriers_;
  Nanos version_ = 0;
  uint32_t unplaced_ = 0;                                     // programs without a flash page yet
  std::unordered_multimap<uint32_t, Superseded> superseded_;  // by page
  std::deque<Expiry> expiries_;  // until older data of the sectors has arrived
};

}  // namespace cairn::flash
