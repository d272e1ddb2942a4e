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
  using Chain = ChainPlace;

  explicit SegmentTable(uint64_t segments) : entries_(segments * kEntryBytes) {}

  uint64_t segments() const { return entries_.size() / kEntryBytes; }
  Chain at(uint32_t segment) const {
    return decode_entry(Bytes(entries_).subspan(uint64_t{segment} * kEntryBytes));
  }
  void set(uint32_t segment, Chain chain) {
    live_buckets_ += chain.length;
    live_buckets_ -= at(segment).length;
    encode_entry(chain, MutableBytes(entries_).subspan(uint64_t{segment} * kEntryBytes));
  }
  // What it held is lost; it says so from now on.
  void set_damaged(uint32_t segment) { set(segment, {.length = 0, .place = Chain::kDamaged}); }
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
      if (!is_sound(entry_of(from, i), key_buckets)) return false;
    }
    for (uint64_t i = 0; i < count; ++i) {
      set(static_cast<uint32_t>(first + i), entry_of(from, i));
    }
    return true;
  }

 private:
  static Chain entry_of(Bytes page, uint64_t n) {
    return decode_entry(page.subspan(n * kEntryBytes, kEntryBytes));
  }

  std::vector<std::byte> entries_;
  uint64_t live_buckets_ = 0;
};

}  // namespace cairn::kv::store
