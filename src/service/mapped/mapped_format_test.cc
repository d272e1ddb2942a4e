// SPDX-License-Identifier: Apache-2.0
// What services that map chunks write on drives: the bytes, there and back, and what others may
// have written instead.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "service/mapped/codec.h"
#include "service/mapped/compress_format.h"
#include "service/mapped/dedup_format.h"
#include "service/mapped/mapped_format.h"
#include "service/mapped/snapshot_format.h"
#include "service/mapped/spillover_format.h"
#include "service/mapped/thin_format.h"

namespace cairn::drive {
namespace {

constexpr uint32_t kBlock = 4096;
constexpr Geometry kBelow{.blocks = 4096, .block_size = kBlock};
// 100 chunks of 4 blocks on 90 units.
constexpr MappedLayout kLayout{.blocks = 400,
                               .chunk_blocks = 4,
                               .journal_first = 2,
                               .journal_blocks = 10,
                               .data_first = 12,
                               .units = 90};
constexpr SpilloverBody kPair{.layout = {.blocks = 440,
                                         .chunk_blocks = 4,
                                         .journal_first = 2,
                                         .journal_blocks = 10,
                                         .data_first = 12,
                                         .units = 90},
                              .elsewhere_first = 4,
                              .elsewhere_units = 21};

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}
template <class T>
std::vector<std::byte> encoded(const T& record) {
  std::vector<std::byte> bytes(sizeof record);
  store(MutableBytes(bytes), record);
  return bytes;
}
// None: it is a success.
template <class T>
std::optional<Errc> error_of(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code();
}

TEST(MappedFormat, LabelBodyIsSixNumbers) {
  std::vector<std::byte> wanted;
  for (const int number : {400 % 256, 4, 2, 10, 12, 90}) {
    std::vector<std::byte> word(8);
    word[0] = static_cast<std::byte>(number);
    wanted.insert(wanted.end(), word.begin(), word.end());
  }
  wanted[1] = static_cast<std::byte>(400 / 256);
  EXPECT_EQ(encode_layout(kLayout), wanted);
  EXPECT_EQ(decode_layout(wanted, kBelow).value(), kLayout);
}

TEST(MappedFormat, LayoutThatDoesNotFitIsRefused) {
  const auto refuses = [](auto change) {
    MappedLayout layout = kLayout;
    change(layout);
    EXPECT_EQ(error_of(decode_layout(encode_layout(layout), kBelow)), Errc::kCorrupt);
  };
  refuses([](MappedLayout& layout) { layout.blocks = 0; });
  refuses([](MappedLayout& layout) { layout.blocks = UINT64_MAX; });
  refuses([](MappedLayout& layout) { layout.chunk_blocks = 0; });
  refuses([](MappedLayout& layout) { layout.chunk_blocks = 3; });
  refuses([](MappedLayout& layout) { layout.journal_first = 1; });
  refuses([](MappedLayout& layout) { layout.journal_blocks = 11; });
  refuses([](MappedLayout& layout) { layout.data_first = 4097; });
  refuses([](MappedLayout& layout) { layout.units = 0; });
  refuses([](MappedLayout& layout) { layout.units = UINT64_MAX; });
  std::vector<std::byte> body = encode_layout(kLayout);
  body.pop_back();
  EXPECT_EQ(error_of(decode_layout(body, kBelow)), Errc::kCorrupt);
}

TEST(MappedFormat, UnitsAreCountedIn32Bits) {
  constexpr Geometry kHuge{.blocks = uint64_t{1} << 40, .block_size = kBlock};
  MappedLayout layout = kLayout;
  layout.units = UINT32_MAX;
  EXPECT_EQ(decode_layout(encode_layout(layout), kHuge).value(), layout);
  for (const uint64_t units : {uint64_t{1} << 32, (uint64_t{1} << 32) + 90}) {
    layout.units = units;
    EXPECT_EQ(error_of(decode_layout(encode_layout(layout), kHuge)), Errc::kCorrupt);
  }
}

TEST(MappedFormat, WhatIsPlannedCanBeOpenedAgain) {
  for (const uint64_t blocks : {uint64_t{4096}, uint64_t{1} << 33, uint64_t{1} << 40}) {
    const Geometry below{.blocks = blocks, .block_size = kBlock};
    const Result<MappedLayout> planned =
        plan_layout(below, {.chunk_bytes = kBlock, .record_size = sizeof(ThinRecord)});
    ASSERT_TRUE(planned);
    const Result<MappedLayout> read = decode_layout(encode_layout(*planned), below);
    ASSERT_TRUE(read) << blocks;
    EXPECT_EQ(*read, *planned);
  }
}

TEST(ThinFormat, RecordIsAChunkAndAUnit) {
  const auto bytes = bytes_of({99, 0, 0, 0, 90, 0, 0, 0});
  EXPECT_EQ(encoded(ThinRecord{.chunk = 99, .unit = 90}), bytes);
  const Result<ThinRecord> record = decode_thin_record(bytes, kLayout);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->chunk, 99u);
  EXPECT_EQ(record->unit, 90u);
}

TEST(ThinFormat, WhatThereIsNotIsRefused) {
  const auto decode = [](Bytes bytes) { return error_of(decode_thin_record(bytes, kLayout)); };
  EXPECT_EQ(decode(encoded(ThinRecord{.chunk = 100, .unit = 1})), Errc::kCorrupt);
  EXPECT_EQ(decode(encoded(ThinRecord{.chunk = 0, .unit = 91})), Errc::kCorrupt);
  EXPECT_EQ(decode(encoded(ThinRecord{.chunk = 0, .unit = UINT32_MAX})), Errc::kCorrupt);
  EXPECT_EQ(decode(bytes_of({1, 0, 0, 0})), Errc::kCorrupt);
  EXPECT_EQ(decode({}), Errc::kCorrupt);
}

TEST(DedupFormat, RecordIsABlockAUnitAndAHash) {
  const auto bytes = bytes_of({143, 1, 0, 0, 90, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(encoded(DedupRecord{.block = 399, .unit = 90, .hash = 0x0102030405060708}), bytes);
  const Result<DedupRecord> record = decode_dedup_record(bytes, kLayout);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->block, 399u);
  EXPECT_EQ(record->unit, 90u);
  EXPECT_EQ(record->hash, 0x0102030405060708u);
}

TEST(DedupFormat, WhatThereIsNotIsRefused) {
  const auto decode = [](Bytes bytes) { return error_of(decode_dedup_record(bytes, kLayout)); };
  EXPECT_EQ(decode(encoded(DedupRecord{.block = 400, .unit = 1})), Errc::kCorrupt);
  EXPECT_EQ(decode(encoded(DedupRecord{.block = 0, .unit = 91})), Errc::kCorrupt);
  EXPECT_EQ(decode(std::vector<std::byte>(17)), Errc::kCorrupt);
}

CompressRecord three_blocks() {
  return {.number = 49,
          .chunk = {.bytes = 2 * kBlock + 5,
                    .count = 3,
                    .codec = static_cast<uint8_t>(Codec::kZstd),
                    .units = {7, 89, 0}}};
}

TEST(CompressFormat, RecordIsAChunkAndWhereItsBlocksAre) {
  const std::vector<std::byte> bytes = encoded(three_blocks());
  EXPECT_EQ(std::vector(bytes.begin(), bytes.begin() + 24),
            bytes_of({49, 0, 0, 0, 5, 32, 0, 0, 3, 2, 0, 0, 7, 0, 0, 0, 89, 0, 0, 0, 0, 0, 0, 0}));
  const Result<CompressRecord> record = decode_compress_record(bytes, kLayout, kBlock);
  ASSERT_TRUE(record);
  EXPECT_EQ(encoded(*record), bytes);
  EXPECT_EQ(record->chunk.used().size(), 3u);
}

TEST(CompressFormat, ChunkThatCannotBeIsRefused) {
  const auto refuses = [](auto change) {
    CompressRecord record = three_blocks();
    change(record);
    EXPECT_EQ(error_of(decode_compress_record(encoded(record), kLayout, kBlock)), Errc::kCorrupt);
  };
  refuses([](CompressRecord& record) { record.number = 50; });
  refuses([](CompressRecord& record) { record.chunk.count = 9; });
  refuses([](CompressRecord& record) { record.chunk.count = 255; });
  refuses([](CompressRecord& record) { record.chunk.count = 8; });  // though it is compressed
  refuses([](CompressRecord& record) { record.chunk.codec = 0; });  // though it is not whole
  refuses([](CompressRecord& record) { record.chunk.codec = 3; });
  refuses([](CompressRecord& record) { record.chunk.bytes = 3 * kBlock + 1; });
  refuses([](CompressRecord& record) { record.chunk.bytes = UINT32_MAX; });
  refuses([](CompressRecord& record) { record.chunk.units[2] = 90; });
  EXPECT_EQ(error_of(decode_compress_record(std::vector<std::byte>(43), kLayout, kBlock)),
            Errc::kCorrupt);
}

TEST(SnapshotFormat, NameFollowsTheNumbers) {
  const SnapshotRecord record{
      .kind = SnapshotRecord::kMakeClone, .chunk = 1, .unit = 2, .number = 3};
  const std::vector<std::byte> bytes = encode_snapshot_record(record, "ab");
  EXPECT_EQ(bytes, bytes_of({21, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 'a', 'b'}));
  const Result<NamedSnapshotRecord> decoded = decode_snapshot_record(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encoded(decoded->record), encoded(record));
  EXPECT_EQ(decoded->name, "ab");
}

TEST(SnapshotFormat, EachKindHasItsNumber) {
  const auto number = [](SnapshotRecord::Kind kind) { return static_cast<uint32_t>(kind); };
  EXPECT_EQ(number(SnapshotRecord::kEpochs), 1u);
  EXPECT_EQ(number(SnapshotRecord::kVersion), 2u);
  EXPECT_EQ(number(SnapshotRecord::kClone), 3u);
  EXPECT_EQ(number(SnapshotRecord::kKept), 4u);
  EXPECT_EQ(number(SnapshotRecord::kNewest), 5u);
  EXPECT_EQ(number(SnapshotRecord::kInClone), 6u);
  EXPECT_EQ(number(SnapshotRecord::kSet), 16u);
  EXPECT_EQ(number(SnapshotRecord::kSavedTo), 23u);
  for (uint32_t kind = 0; kind < 40; ++kind) {
    const bool is_kind = (kind >= 1 && kind <= 6) || (kind >= 16 && kind <= 23);
    EXPECT_EQ(decode_snapshot_record(encoded(SnapshotRecord{.kind = kind})).has_value(), is_kind)
        << kind;
  }
}

TEST(SnapshotFormat, NameWhereNoneCanBeIsRefused) {
  const auto decode = [](uint32_t kind, size_t letters) {
    return error_of(
        decode_snapshot_record(encode_snapshot_record({.kind = kind}, std::string(letters, 'x'))));
  };
  EXPECT_EQ(decode(SnapshotRecord::kVersion, kSnapshotNameMax), std::nullopt);
  EXPECT_EQ(decode(SnapshotRecord::kTake, 0), std::nullopt);
  EXPECT_EQ(decode(SnapshotRecord::kVersion, kSnapshotNameMax + 1), Errc::kCorrupt);
  EXPECT_EQ(decode(SnapshotRecord::kSet, 1), Errc::kCorrupt);
  EXPECT_EQ(decode(SnapshotRecord::kSavedTo, 1), Errc::kCorrupt);
  EXPECT_EQ(error_of(decode_snapshot_record(std::vector<std::byte>(15))), Errc::kCorrupt);
}

TEST(SpilloverFormat, BodyEndsWithTheDriveElsewhereAndItsRole) {
  SpilloverBody body = kPair;
  body.role = SpilloverBody::kElsewhere;
  const std::vector<std::byte> bytes = encode_spillover_body(body);
  ASSERT_EQ(bytes.size(), 72u);
  EXPECT_EQ(std::vector(bytes.begin(), bytes.begin() + 48), encode_layout(body.layout));
  EXPECT_EQ(std::vector(bytes.begin() + 48, bytes.end()),
            bytes_of({4, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}));
  const Result<SpilloverBody> decoded = decode_spillover_body(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode_spillover_body(*decoded), bytes);
  EXPECT_TRUE(check_spillover_body(*decoded, kBelow));
}

TEST(SpilloverFormat, BodyThatDoesNotFitIsRefused) {
  const auto refuses = [](auto change) {
    SpilloverBody body = kPair;
    change(body);
    const Result<SpilloverBody> decoded = decode_spillover_body(encode_spillover_body(body));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(error_of(check_spillover_body(*decoded, kBelow)), Errc::kCorrupt);
  };
  refuses([](SpilloverBody& body) { body.elsewhere_units = 0; });
  refuses([](SpilloverBody& body) { body.elsewhere_units = kSpilloverUnitsMax + 1; });
  refuses([](SpilloverBody& body) { body.elsewhere_first = 2; });
  refuses([](SpilloverBody& body) { body.layout.blocks += 4; });
  refuses([](SpilloverBody& body) { body.layout.units = 5000; });
  SpilloverBody body = kPair;
  body.role = 2;
  EXPECT_EQ(error_of(decode_spillover_body(encode_spillover_body(body))), Errc::kCorrupt);
  EXPECT_EQ(error_of(decode_spillover_body(encode_layout(kLayout))), Errc::kCorrupt);
}

TEST(SpilloverFormat, RecordSaysOnWhichDriveAUnitIs) {
  const auto bytes = bytes_of({109, 0, 0, 0, 21, 0, 0, 0x80});
  const Result<SpilloverRecord> record = decode_spillover_record(bytes, kPair);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->chunk, 109u);
  EXPECT_EQ(record->place, SpilloverRecord::kElsewhere | 21);
  EXPECT_EQ(encoded(*record), bytes);
}

TEST(SpilloverFormat, WhatThereIsNotIsRefused) {
  const auto decode = [](uint32_t chunk, uint32_t place) {
    return error_of(
        decode_spillover_record(encoded(SpilloverRecord{.chunk = chunk, .place = place}), kPair));
  };
  EXPECT_EQ(decode(0, 0), std::nullopt);
  EXPECT_EQ(decode(0, 90), std::nullopt);
  EXPECT_EQ(decode(110, 1), Errc::kCorrupt);
  EXPECT_EQ(decode(0, 91), Errc::kCorrupt);
  EXPECT_EQ(decode(0, SpilloverRecord::kElsewhere), Errc::kCorrupt);
  EXPECT_EQ(decode(0, SpilloverRecord::kElsewhere | 22), Errc::kCorrupt);
  EXPECT_EQ(error_of(decode_spillover_record(std::vector<std::byte>(7), kPair)), Errc::kCorrupt);
}

// Bytes of anybody's are refused as damage, or name only what there is.
TEST(MappedFormat, AnyBytesAreRefusedOrNameWhatThereIs) {
  Rng rng(18);
  std::array<std::byte, 72> memory{};
  for (int i = 0; i < 20'000; ++i) {
    for (std::byte& each : memory) {
      each = static_cast<std::byte>(rng.bernoulli(0.6) ? 0 : rng.below(256));
    }
    const Bytes all(memory);
    if (const auto thin = decode_thin_record(all.first(8), kLayout)) {
      EXPECT_LT(thin->chunk, kLayout.chunks());
      EXPECT_LE(thin->unit, kLayout.units);
    }
    if (const auto dedup = decode_dedup_record(all.first(16), kLayout)) {
      EXPECT_LT(dedup->block, kLayout.blocks);
      EXPECT_LE(dedup->unit, kLayout.units);
    }
    if (const auto packed = decode_compress_record(all.first(44), kLayout, kBlock)) {
      EXPECT_LE(packed->chunk.count, kCompressChunkBlocks);
      for (const uint32_t unit : packed->chunk.used()) EXPECT_LT(unit, kLayout.units);
    }
    if (const auto named = decode_snapshot_record(all.first(rng.below(72)))) {
      EXPECT_LE(named->name.size(), kSnapshotNameMax);
    }
    if (const auto place = decode_spillover_record(all.first(8), kPair)) {
      EXPECT_LT(place->chunk, kPair.layout.chunks());
    }
  }
}

}  // namespace
}  // namespace cairn::drive
