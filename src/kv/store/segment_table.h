// SPDX-License-Identifier: Apache-2.0
// SegmentTable: where each segment's newest chain is, in 5 bytes. The only index in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "kv/store/table_format.h"

namespace cairn::kv::store {

class SegmentTable {
 public:
  // `buckets` of the key log; a place is one of those.
  struct Chain {
    uint8_t length = 0;  // 0: the segment has no keys
    uint32_t place = 0;
    bool is_damaged() const { return length == 0 && place == kDamaged; }
    friend bool operator==(const Chain&, const Chain&) = default;
  };

  explicit SegmentTable(uint64_t segments) : entries_(segments * kEntryBytes) {}

  uint64_t segments() const { return entries_.size() / kEntryBytes; }
  Chain at(uint32_t segment) const {
    const std::byte* entry = entries_.data() + uint64_t{segment} * kEntryBytes;
    return {.length = static_cast<uint8_t>(entry[0]),
            .place = load<uint32_t>({entry + 1, sizeof(uint32_t)})};
  }
  void set(uint32_t segment, Chain chain) {
    live_buckets_ += chain.length;
    live_buckets_ -= at(segment).length;
    std::byte* entry = entries_.data() + uint64_t{segment} * kEntryBytes;
    entry[0] = static_cast<std::byte>(chain.length);
    cairn::store({entry + 1, sizeof(uint32_t)}, chain.place);
  }
  // What it held is lost; it says so from now on.
  void set_damaged(uint32_t segment) { set(segment, {.length = 0, .place = kDamaged}); }
  void clear() {
    std::ranges::fill(entries_, std::byte{0});
    live_buckets_ = 0;
  }

  // Of all chains together.
  uint64_t live_buckets() const { return live_buckets_; }

  // The entries of a page of a checkpoint; the last page has fewer.
  Bytes page(uint64_t number) const {
    const size_t begin = number * kEntriesInPage * kEntryBytes;
    return Bytes(entries_).subspan(begin,
                                   std::min(kEntriesInPage * kEntryBytes, entries_.size() - begin));
  }
  // Puts the entries of a page back. False, and nothing is changed: a chain does not lie in a log
  // of so many buckets.
  bool load_page(uint64_t number, Bytes from, uint64_t key_buckets) {
    const auto first = static_cast<uint32_t>(number * kEntriesInPage);
    const uint64_t count = std::min<uint64_t>(kEntriesInPage, segments() - first);
    for (uint64_t i = 0; i < count; ++i) {
      const Chain chain = entry_of(from, i);
      if (chain.length == 0 ? chain.place > kDamaged : chain.place + chain.length > key_buckets) {
        return false;
      }
    }
    for (uint64_t i = 0; i < count; ++i) {
      set(static_cast<uint32_t>(first + i), entry_of(from, i));
    }
    return true;
  }

 private:
  static constexpr uint32_t kDamaged = 1;
  static Chain entry_of(Bytes page, uint64_t n) {
    const Bytes entry = page.subspan(n * kEntryBytes, kEntryBytes);
    return {.length = load<uint8_t>(entry), .place = load<uint32_t>(entry.subspan(1))};
  }

  std::vector<std::byte> entries_;
  uint64_t live_buckets_ = 0;
};

}  // namespace cairn::kv::store
