// SPDX-License-Identifier: Apache-2.0
#include "raw/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace cairn::raw_tests {

namespace {

constexpr size_t kStamp = 16;  // value and place, over and over

void fill_block(MutableBytes block, uint64_t value, uint64_t lba) {
  const uint64_t place = value == 0 ? 0 : lba + 1;
  for (size_t at = 0; at < block.size(); at += kStamp) {
    store(block.subspan(at), value);
    store(block.subspan(at + 8), place);
  }
}

bool is_whole(Bytes block) {
  for (size_t at = kStamp; at < block.size(); at += kStamp) {
    if (!std::ranges::equal(block.subspan(at, kStamp), block.first(kStamp))) return false;
  }
  return true;
}

}  // namespace

uint64_t History::begin_write(Range range, uint32_t host) {
  writes_.push_back({.range = range, .host = host, .begun = now()});
  for (uint32_t i = 0; i < range.count; ++i) blocks_[range.lba + i].push_back(writes_.size());
  return writes_.size();
}

void History::end_write(uint64_t value, Outcome outcome) {
  Write& write = writes_[value - 1];
  CHECK(!write.is_done && !write.is_refused, "a write ends once");
  write.ended = std::min(write.ended, now());
  write.is_done = outcome == Outcome::kDone;
  write.is_refused = outcome == Outcome::kRefused;
}

void History::fence(uint32_t host) {
  const uint64_t time = now();
  for (Write& write : writes_) {
    if (write.host == host) write.ended = std::min(write.ended, time);
  }
}

std::vector<std::byte> History::contents(uint64_t value, Range range) {
  std::vector<std::byte> bytes(size_t{range.count} * kBlock);
  for (uint32_t i = 0; i < range.count; ++i) {
    fill_block(MutableBytes(bytes).subspan(size_t{i} * kBlock, kBlock), value, range.lba + i);
  }
  return bytes;
}

void History::check_value(uint64_t lba, uint64_t begun, uint64_t value) {
  if (value > writes_.size()) return complain(fmt::format("block {} holds {}", lba, value));
  Write first;
  first.ended = 0;
  const Write& write = value == 0 ? first : writes_[value - 1];
  const bool is_there = value == 0 || std::ranges::find(blocks_[lba], value) != blocks_[lba].end();
  if (!is_there || write.is_refused) {
    return complain(fmt::format("block {} holds {}, which was never written there", lba, value));
  }
  for (const uint64_t other : blocks_[lba]) {
    const Write& later = writes_[other - 1];
    if (later.is_done && later.begun > write.ended && later.ended < begun) {
      return complain(
          fmt::format("block {} holds {} although {} has replaced it", lba, value, other));
    }
  }
}

void History::check_read(Range range, uint64_t begun, Bytes data) {
  if (data.size() != size_t{range.count} * kBlock) {
    return complain(fmt::format("{} bytes of {} blocks", data.size(), range.count));
  }
  for (uint32_t i = 0; i < range.count; ++i) {
    const uint64_t lba = range.lba + i;
    const Bytes block = data.subspan(size_t{i} * kBlock, kBlock);
    const auto value = load<uint64_t>(block);
    const auto place = load<uint64_t>(block.subspan(8));
    if (!is_whole(block) || place != (value == 0 ? 0 : lba + 1)) {
      return complain(fmt::format("block {} holds {} of block {}, or parts of it", lba, value,
                                  static_cast<int64_t>(place) - 1));
    }
    check_value(lba, begun, value);
  }
}

void History::check_swap(Range range, uint64_t begun, uint64_t value) {
  for (uint32_t i = 0; i < range.count; ++i) {
    const uint64_t lba = range.lba + i;
    check_value(lba, begun, value);
    if (!swapped_.emplace(lba, value).second) {
      complain(fmt::format("value {} of block {} was replaced twice", value, lba));
    }
  }
}

void History::check_whole(Range range, Bytes data) {
  if (data.size() != size_t{range.count} * kBlock) {
    return complain(fmt::format("{} bytes of {} copied blocks", data.size(), range.count));
  }
  for (uint32_t i = 0; i < range.count; ++i) {
    const Bytes block = data.subspan(size_t{i} * kBlock, kBlock);
    const auto value = load<uint64_t>(block);
    const auto place = load<uint64_t>(block.subspan(8));
    const bool is_right =
        is_whole(block) && value <= writes_.size() && place == (value == 0 ? 0 : range.lba + i + 1);
    if (!is_right) complain(fmt::format("the copy of block {} holds {}", range.lba + i, value));
  }
}

uint64_t History::last_value(uint64_t lba) const {
  uint64_t last = 0;
  uint64_t latest = 0;
  for (const uint64_t value : blocks_[lba]) {
    const Write& write = writes_[value - 1];
    if (!write.is_done || write.ended < latest) continue;
    latest = write.ended;
    last = value;
  }
  return last;
}

}  // namespace cairn::raw_tests
