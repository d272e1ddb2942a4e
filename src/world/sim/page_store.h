// SPDX-License-Identifier: Apache-2.0
// PageStore: the bytes of a disk, of which only pages that were written take memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/bytes.h"

namespace cairn::sim {

class PageStore {
 public:
  static constexpr size_t kPageSize = 4096;

  // What was never written reads as zeroes.
  void read(uint64_t offset, MutableBytes into) const;
  void write(uint64_t offset, Bytes from);
  void write_zeroes(uint64_t offset, uint64_t length);
  // Whether any page of the range was written since it was last zeroed as a whole.
  bool has_data(uint64_t offset, uint64_t length) const;
  size_t page_count() const { return pages_.size(); }

 private:
  using Page = std::array<std::byte, kPageSize>;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;  // never iterated over
};

}  // namespace cairn::sim
