// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_format.h"

#include <gtest/gtest.h>

#include <vector>

#include "service/raid/parity_layout.h"

namespace cairn::drive {
namespace {

ParityLabel some_label() {
  ParityLabel label{.id = {1, 2},
                    .generation = 3,
                    .block_size = 512,
                    .rows = 6400,
                    .chunk_blocks = 128,
                    .log_blocks = 516,
                    .legs = 4,
                    .parity = 2,
                    .own = 3,
                    .medium = 10};
  label.members[0] = {.id = 5, .stale_from = 2};
  label.members[1] = {.id = 7};
  label.members[2] = {.id = 8};
  label.members[3] = {.id = 6};
  return label;
}

TEST(ParityFormat, ALabelIsReadAsItWasWritten) {
  const Label body = encode_parity_label(some_label(), 8000);
  EXPECT_LE(body.body.size(), kLabelBodyMax);
  std::vector<std::byte> block(512);
  encode_label(kParityLabel, body, block);
  const Result<Label> label = decode_label(kParityLabel, block);
  ASSERT_TRUE(label);
  const Result<ParityLabel> read = decode_parity_label(*label);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, some_label());
  EXPECT_EQ(read->log_offset(), 128U);
  EXPECT_EQ(read->data_offset(), 768U) << "a multiple of 64 KiB";
}

TEST(ParityFormat, NumbersThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change) {
    ParityLabel label = some_label();
    change(label);
    const Result<ParityLabel> read = decode_parity_label(encode_parity_label(label, 8000));
    return !read && read.error() == Errc::kCorrupt;
  };
  EXPECT_FALSE(refused([](ParityLabel&) {}));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.legs = 25; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.legs = 1; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.parity = 4; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.parity = 0; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.own = 4; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.chunk_blocks = 0; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.rows = 100; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.rows = 0; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.rows = UINT64_MAX / 128 * 128; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.log_blocks = 1; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.block_size = 513; }));
  EXPECT_TRUE(refused([](ParityLabel& l) { l.members[2].id = 5; })) << "two legs in one place";
  Label longer = encode_parity_label(some_label(), 8000);
  longer.body.push_back(std::byte{0});
  EXPECT_FALSE(decode_parity_label(longer));
}

TEST(ParityFormat, DamageToAnyByteOfStateAndEntriesIsFound) {
  std::vector<std::byte> block(512);
  ParityState state{.epoch = 7, .missed = RegionSet(some_label().regions())};
  state.missed.add(13);
  encode_parity_state(state, some_label(), block);
  EXPECT_EQ(decode_parity_state(some_label(), block)->epoch, 7U);
  EXPECT_TRUE(decode_parity_state(some_label(), block)->missed.has(13));
  for (std::byte& byte : block) {
    byte ^= std::byte{0x10};
    EXPECT_FALSE(decode_parity_state(some_label(), block));
    byte ^= std::byte{0x10};
  }
  const ParityEntry entry{
      .epoch = 7, .position = 20, .first_row = 100, .rows = 8, .legs = 9, .content_crc = 1};
  encode_parity_entry(entry, some_label(), block);
  EXPECT_TRUE(decode_parity_entry(some_label(), block)->is_part_of(entry));
  for (std::byte& byte : block) {
    byte ^= std::byte{0x10};
    EXPECT_FALSE(decode_parity_entry(some_label(), block));
    byte ^= std::byte{0x10};
  }
  ParityLabel other = some_label();
  other.id[1] = 3;
  EXPECT_FALSE(decode_parity_entry(other, block)) << "of other legs";
}

TEST(ParityFormat, EntriesBeyondRowsOrLogAreRefused) {
  const auto refused = [](ParityEntry entry) {
    std::vector<std::byte> block(512);
    encode_parity_entry(entry, some_label(), block);
    return !decode_parity_entry(some_label(), block);
  };
  EXPECT_FALSE(refused({.first_row = 6392, .rows = 8, .legs = 1}));
  EXPECT_TRUE(refused({.first_row = 6393, .rows = 8, .legs = 1}));
  EXPECT_TRUE(refused({.first_row = UINT64_MAX, .rows = 8, .legs = 1}));
  EXPECT_TRUE(refused({.rows = UINT64_MAX, .legs = 1, .is_zeroes = true}));
  EXPECT_TRUE(refused({.rows = 0, .legs = 1}));
  EXPECT_TRUE(refused({.position = 510, .rows = 6, .legs = 1})) << "it would not fit into the log";
  EXPECT_FALSE(refused({.position = 510, .rows = 6, .legs = 1, .is_zeroes = true}));
  EXPECT_TRUE(refused({.rows = 8, .legs = 0}));
  EXPECT_TRUE(refused({.rows = 8, .legs = 16}));
}

TEST(ParityLayout, SegmentsAreTheBlocksAndNoOthers) {
  const ParityLayout layout{.data = 3, .legs = 5, .chunk = 4};
  for (uint64_t first = 0; first < 30; ++first) {
    for (uint64_t count = 1; count < 30; ++count) {
      std::vector<int> seen(80);
      std::vector<int> rows(40);
      layout.for_each_segment(first, count, 3, [&](const ParityLayout::Segment& segment) {
        EXPECT_LE(segment.rows.count, 3U);
        EXPECT_EQ(segment.rows.first / 4, (segment.rows.end() - 1) / 4) << "in one stripe";
        for (uint64_t row = segment.rows.first; row < segment.rows.end(); ++row) {
          ++rows[row];
          for (size_t i = 0; i < segment.symbols; ++i) {
            ++seen[layout.block_at(row, segment.first_symbol + i)];
          }
        }
      });
      const RowSpan hull = layout.rows_of(first, count);
      for (uint64_t block = 0; block < seen.size(); ++block) {
        ASSERT_EQ(seen[block], block >= first && block < first + count ? 1 : 0);
      }
      for (uint64_t row = 0; row < rows.size(); ++row) {
        ASSERT_LE(rows[row], 1) << "a row is in one update";
        if (rows[row] > 0) ASSERT_TRUE(row >= hull.first && row < hull.end());
      }
    }
  }
}

TEST(ParityLayout, ParityRotatesOverAllLegs) {
  const ParityLayout layout{.data = 2, .legs = 3, .chunk = 4};
  EXPECT_EQ(layout.leg_of(0, 2), 2U);
  EXPECT_EQ(layout.leg_of(4, 2), 0U);
  EXPECT_EQ(layout.leg_of(11, 2), 1U);
  EXPECT_EQ(layout.leg_of(12, 2), 2U);
  for (uint64_t block = 0; block < 100; ++block) {
    const ParityLayout::SymbolPosition position = layout.locate(block);
    EXPECT_EQ(layout.block_at(position.row, position.symbol), block);
  }
}

}  // namespace
}  // namespace cairn::drive
