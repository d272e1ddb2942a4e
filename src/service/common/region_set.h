// SPDX-License-Identifier: Apache-2.0
// RegionSet: which regions of a drive something is true of, as bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::drive {

class RegionSet {
 public:
  RegionSet() = default;
  explicit RegionSet(size_t regions) : size_(regions), words_((regions + 63) / 64) {}

  size_t size() const { return size_; }
  bool has(size_t region) const { return (words_[region / 64] >> (region % 64) & 1) != 0; }
  void add(size_t region) { words_[region / 64] |= uint64_t{1} << (region % 64); }
  void remove(size_t region) { words_[region / 64] &= ~(uint64_t{1} << (region % 64)); }
  void add_all() {
    for (size_t region = 0; region < size_; ++region) add(region);
  }
  void add(const RegionSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void remove(const RegionSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }
  size_t count() const {
    size_t count = 0;
    for (const uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
    return count;
  }
  bool empty() const { return count() == 0; }
  // The first member from `region` on; size() when there is none.
  size_t next(size_t region) const {
    while (region < size_ && !has(region)) ++region;
    return region;
  }

  // Region 0 is the lowest bit of the first.
  std::span<const uint64_t> words() const { return words_; }

 private:
  size_t size_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace cairn::drive
