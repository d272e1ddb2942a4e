// SPDX-License-Identifier: Apache-2.0
#include "testing/fabric/oracle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cairn::fabric_tests {

void fill_block(MutableBytes block, uint64_t value, uint64_t lba) {
  const uint64_t place = value == 0 ? 0 : lba + 1;
  for (size_t at = 0; at < block.size(); at += 16) {
    store(block.subspan(at), value);
    store(block.subspan(at + 8), place);
  }
}

uint64_t value_of(Bytes block, uint64_t lba, std::string& wrong) {
  const auto value = load<uint64_t>(block);
  const uint64_t place = value == 0 ? 0 : lba + 1;
  for (size_t at = 0; at < block.size(); at += 16) {
    const auto here = load<uint64_t>(block.subspan(at));
    const auto its_place = load<uint64_t>(block.subspan(at + 8));
    if (here != value || its_place != place) {
      wrong = fmt::format("block {} holds value {} of block {} at byte {}, but {} of {} at first",
                          lba, here, static_cast<int64_t>(its_place) - 1, at, value,
                          static_cast<int64_t>(load<uint64_t>(block.subspan(8))) - 1);
      break;
    }
  }
  return value;
}

void Oracle::box_started() {
  ++starts_;
  for (Block& block : blocks_) block.now.insert(block.after_crash.begin(), block.after_crash.end());
}

Oracle::Asked Oracle::begin_write(uint64_t lba, uint64_t count, uint64_t value) {
  for (uint64_t i = 0; i < count; ++i) {
    blocks_[lba + i].now.insert(value);
    blocks_[lba + i].after_crash.insert(value);
  }
  return {.lba = lba, .count = count, .value = value, .start = starts_, .seen_then = {}};
}

void Oracle::end_write(const Asked& asked, bool succeeded, bool durable) {
  if (!succeeded) return;
  for (uint64_t i = 0; i < asked.count; ++i) {
    Block& block = blocks_[asked.lba + i];
    if (durable) block.after_crash = {asked.value};
    // Its answer may have been on the way while what it wrote was lost.
    if (durable || asked.start == starts_) block.now = {asked.value};
  }
}

Oracle::Asked Oracle::begin_read(uint64_t lba, uint64_t count) const {
  Asked asked{.lba = lba, .count = count, .value = 0, .start = starts_, .seen_then = {}};
  for (uint64_t i = 0; i < count; ++i) asked.seen_then.push_back(blocks_[lba + i].now);
  return asked;
}

void Oracle::end_read(const Asked& asked, Bytes data) {
  for (uint64_t i = 0; i < asked.count; ++i) {
    const uint64_t lba = asked.lba + i;
    Block& block = blocks_[lba];
    std::string torn;
    const uint64_t found = value_of(data.subspan(i * kBlock, kBlock), lba, torn);
    if (!torn.empty()) complain(torn);
    if (!block.now.contains(found) && !asked.seen_then[i].contains(found)) {
      complain(fmt::format("block {} holds {}; only {} can be there", lba, found, block.now));
    }
    // What was in doubt is not, any more.
    if (asked.start == starts_) block.now = {found};
  }
}

void Oracle::end_flush(uint64_t lba, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) blocks_[lba + i].after_crash = blocks_[lba + i].now;
}

}  // namespace cairn::fabric_tests
