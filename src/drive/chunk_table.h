// SPDX-License-Identifier: Apache-2.0
// ChunkTable: something about each chunk of a drive, in memory only where it was ever set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cairn::drive {

// Chunks that were not set have the value T{}. Finding one is two loads.
template <class T>
class ChunkTable {
 public:
  ChunkTable() = default;
  explicit ChunkTable(uint64_t chunks) { resize(chunks); }

  uint64_t size() const { return chunks_; }
  // Grows.
  void resize(uint64_t chunks) {
    chunks_ = chunks;
    pages_.resize((chunks + kPage - 1) / kPage);
  }
  T get(uint64_t chunk) const {
    const std::unique_ptr<Page>& page = pages_[chunk / kPage];
    return page == nullptr ? T{} : (*page)[chunk % kPage];
  }
  void set(uint64_t chunk, const T& value) {
    std::unique_ptr<Page>& page = pages_[chunk / kPage];
    if (page == nullptr) page = std::make_unique<Page>();
    (*page)[chunk % kPage] = value;
  }
  // f(chunk, value) for each that is in memory, set or not.
  template <class F>
  void for_each(F f) const {
    for (size_t i = 0; i < pages_.size(); ++i) {
      if (pages_[i] == nullptr) continue;
      for (size_t j = 0; j < kPage && i * kPage + j < chunks_; ++j) {
        f(i * kPage + j, (*pages_[i])[j]);
      }
    }
  }

 private:
  static constexpr size_t kPage = 1024;
  using Page = std::array<T, kPage>;
  uint64_t chunks_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace cairn::drive
