// SPDX-License-Identifier: Apache-2.0
// ChunkTable: something about each chunk of a drive, in memory only where it was ever set.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  // The first chunk from `chunk` on that is in memory, as far as a bounded search finds one: else
  // one before which none is. size(): there are none.
  uint64_t skip(uint64_t chunk) const {
    uint64_t page = chunk / kPage;
    const uint64_t end = std::min<uint64_t>(page + kSkipMax, pages_.size());
    while (page < end && pages_[page] == nullptr) ++page;
    return std::min(std::max(chunk, page * kPage), chunks_);
  }
  // for_each() in parts of few chunks: this one begins at `chunk`. Returns where the next one
  // begins; none: this was the last.
  template <class F>
  std::optional<uint64_t> for_part(uint64_t chunk, F f) const {
    chunk = skip(chunk);
    const uint64_t end = std::min(end_of_part(chunk), chunks_);
    if (chunk < end && pages_[chunk / kPage] != nullptr) {
      for (; chunk < end; ++chunk) f(chunk, (*pages_[chunk / kPage])[chunk % kPage]);
    }
    return chunk < chunks_ ? std::optional(chunk) : std::nullopt;
  }
  static uint64_t end_of_part(uint64_t chunk) { return (chunk / kPart + 1) * kPart; }

 private:
  static constexpr size_t kPage = 1024;
  static constexpr uint64_t kPart = 64;
  static_assert(kPage % kPart == 0);
  static constexpr uint64_t kSkipMax = 65536;
  using Page = std::array<T, kPage>;
  uint64_t chunks_ = 0;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace cairn::drive
