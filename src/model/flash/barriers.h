// SPDX-License-Identifier: Apache-2.0
// Who waits until every program that was asked for before it has ended.
#pragma once

#include <cstdint>
#include <deque>

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

}  // namespace cairn::flash
