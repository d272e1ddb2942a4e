// SPDX-License-Identifier: Apache-2.0
// ExtentMap: which extents of one drive are used, a bit each.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"

namespace cairn::arbiter {

class ExtentMap {
 public:
  // Extent 0, the label's, is used from the start and stays so.
  explicit ExtentMap(uint32_t extents)
      : extents_(extents), free_(extents - 1), words_((extents + 63) / 64) {
    if (extents % 64 != 0) words_.back() = ~uint64_t{0} << (extents % 64);
    words_[0] |= 1;
    for (const uint64_t word : words_) note(word, 1);
  }

  uint32_t free() const { return free_; }
  bool is_used(uint32_t extent) const { return (words_[extent / 64] >> (extent % 64) & 1) != 0; }
  // kCorrupt: there is no such extent, or it is used already.
  Result<void> use(uint32_t extent) {
    if (extent >= extents_ || is_used(extent)) {
      return fail(Errc::kCorrupt, "an extent of a drive is used twice, or beyond its end");
    }
    flip(extent);
    --free_;
    return {};
  }
  // It must be used.
  void give_back(uint32_t extent) {
    flip(extent);
    ++free_;
  }
  // The first free one from where the last was found on, and then from the start.
  std::optional<uint32_t> find_free() {
    for (size_t i = 0; i < words_.size(); ++i) {
      const size_t word = (hint_ + i) % words_.size();
      if (words_[word] == kFull) continue;
      hint_ = word;
      return static_cast<uint32_t>(word * 64) +
             static_cast<uint32_t>(std::countr_one(words_[word]));
    }
    return std::nullopt;
  }
  // How torn the free space is, in thousandths: of groups of 64 extents with room, those that are
  // not empty.
  int32_t fragmentation() const {
    return with_room_ == 0 ? 0 : static_cast<int32_t>(torn_ * 1000 / with_room_);
  }

 private:
  static constexpr uint64_t kFull = ~uint64_t{0};
  void flip(uint32_t extent) {
    uint64_t& word = words_[extent / 64];
    note(word, -1);
    word ^= uint64_t{1} << (extent % 64);
    note(word, 1);
  }
  void note(uint64_t word, int64_t sign) {
    if (word != kFull) with_room_ += sign;
    if (word != kFull && word != 0) torn_ += sign;
  }

  uint32_t extents_;
  uint32_t free_;
  std::vector<uint64_t> words_;
  int64_t with_room_ = 0;
  int64_t torn_ = 0;
  size_t hint_ = 0;
};

}  // namespace cairn::arbiter
