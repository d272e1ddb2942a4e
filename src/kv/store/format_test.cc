// SPDX-License-Identifier: Apache-2.0
// The bytes of buckets, records, superblock and pages: round trips, golden bytes, hostile input.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/rng.h"
#include "kv/store/bucket_format.h"
#include "kv/store/table_format.h"
#include "kv/store/value_format.h"

namespace cairn::kv::store {
namespace {

constexpr StoreId kId = {0x1111, 0x2222};

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

Item an_item() {
  return {.fingerprint = 0x0807060504030201,
          .place = (uint64_t{1} << 39) - 2,
          .value_bytes = 16 << 20,
          .key_bytes = 65536,
          .version = 0x060504030201,
          .expires_ms = 0x060504030201,
          .is_fresh = true};
}

BucketHeader a_header() {
  return {.segment = 7,
          .epoch = 3,
          .starts_batch = true,
          .batch_left = 2,
          .unstable = 5,
          .chain_length = 2,
          .chain_index = 0,
          .items = 1,
          .key_delta = -1,
          .unit_delta = -70000,
          .value_head = 0x060504030201};
}

TEST(BucketFormat, IsReadAsItWasWritten) {
  std::vector<std::byte> bucket(512);
  const std::vector<Item> items = {an_item()};
  encode_bucket(kId, 99, a_header(), items, bucket);
  const Result<BucketHeader> header = decode_bucket(kId, 99, bucket);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(*header, a_header());
  EXPECT_EQ(item_of_bucket(bucket, 0), an_item());
}

TEST(BucketFormat, HasTheseBytes) {
  std::vector<std::byte> bucket(512);
  const std::vector<Item> items = {an_item()};
  encode_bucket(kId, 99, a_header(), items, bucket);
  EXPECT_EQ(hex(Bytes(bucket).subspan(4, 28)),
            "07000000"
            "4b42"
            "0300"
            "0280"
            "0500"
            "02"
            "00"
            "0100"
            "ffff"
            "010203040506"
            "90eefeff");
  EXPECT_EQ(hex(Bytes(bucket).subspan(32, 30)),
            "0102030405060708"
            "feffffff7f000080"
            "010203040506"
            "010203040586"
            "ffff");
  EXPECT_EQ(hex(Bytes(bucket).subspan(62, 8)), "0000000000000000");
}

TEST(BucketFormat, OfAnotherPlaceOrStoreOrWithAnyBitChangedIsNone) {
  std::vector<std::byte> bucket(512);
  const std::vector<Item> items = {an_item()};
  encode_bucket(kId, 99, a_header(), items, bucket);
  EXPECT_FALSE(decode_bucket(kId, 100, bucket).has_value());
  EXPECT_FALSE(decode_bucket({0x1111, 0x2223}, 99, bucket).has_value());
  for (size_t bit = 0; bit < 512 * 8; ++bit) {
    bucket[bit / 8] ^= std::byte{static_cast<uint8_t>(1 << bit % 8)};
    EXPECT_FALSE(decode_bucket(kId, 99, bucket).has_value()) << bit;
    bucket[bit / 8] ^= std::byte{static_cast<uint8_t>(1 << bit % 8)};
  }
  EXPECT_TRUE(decode_bucket(kId, 99, bucket).has_value());
}

// What has a good checksum and makes no sense is refused too.
TEST(BucketFormat, ThatMakesNoSenseIsNone) {
  std::vector<std::byte> bucket(512);
  const auto refuses = [&](BucketHeader header) {
    const std::vector<Item> items(header.items, an_item());
    encode_bucket(kId, 99, header, items, bucket);
    return !decode_bucket(kId, 99, bucket).has_value();
  };
  EXPECT_FALSE(refuses(a_header()));
  BucketHeader header = a_header();
  header.batch_left = 0;
  EXPECT_TRUE(refuses(header));
  header = a_header();
  header.chain_index = 2;
  EXPECT_TRUE(refuses(header));
}

TEST(BucketFormat, AChainIsOfOneSegment) {
  std::vector<std::byte> chain(1024);
  BucketHeader header = a_header();
  const std::vector<Item> items = {an_item()};
  encode_bucket(kId, 99, header, items, MutableBytes(chain).first(512));
  header.chain_index = 1;
  header.starts_batch = false;
  header.batch_left = 1;
  encode_bucket(kId, 100, header, items, MutableBytes(chain).subspan(512));
  EXPECT_TRUE(check_chain(kId, 99, 7, chain, 512).has_value());
  EXPECT_FALSE(check_chain(kId, 99, 8, chain, 512).has_value());
  EXPECT_FALSE(check_chain(kId, 99, 7, Bytes(chain).first(512), 512).has_value());
  std::vector<Item> read;
  append_items(chain, 512, read);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_FALSE(read[0].is_fresh);
}

std::vector<std::byte> a_record(const RecordHeader& header) {
  std::vector<std::byte> record(header.units() * kUnitBytes);
  const std::string key(header.key_bytes, 'k');
  const std::string value(header.value_bytes, 'v');
  encode_record(kId, 5, header, as_bytes(key), as_bytes(value), record);
  return record;
}

TEST(ValueFormat, IsReadAsItWasWritten) {
  for (const RecordHeader& header :
       {RecordHeader{.key_bytes = 1, .value_bytes = 0, .version = 1},
        RecordHeader{.kind = RecordKind::kPieces, .key_bytes = 65536, .value_bytes = 2048},
        RecordHeader{.kind = RecordKind::kPiece, .key_bytes = 12, .value_bytes = 65536},
        RecordHeader{.key_bytes = 3, .value_bytes = 17, .version = 0x060504030201}}) {
    const std::vector<std::byte> bytes = a_record(header);
    const std::optional<Record> record = decode_record(kId, 5, bytes);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->header, header);
    EXPECT_EQ(as_text(record->key), std::string(header.key_bytes, 'k'));
    EXPECT_EQ(as_text(record->value), std::string(header.value_bytes, 'v'));
    EXPECT_FALSE(decode_record(kId, 6, bytes).has_value());
    EXPECT_FALSE(decode_record(kId, 5, Bytes(bytes).first(header.bytes() - 1)).has_value());
  }
}

TEST(ValueFormat, HasTheseBytes) {
  const std::vector<std::byte> record =
      a_record({.key_bytes = 3, .value_bytes = 2, .version = 0x060504030201});
  EXPECT_EQ(hex(Bytes(record).subspan(4)),
            "02000010"
            "0200"
            "010203040506"
            "6b6b6b7676"
            "0000000000"
            "000000000000");
}

TEST(ValueFormat, WithAnyBitChangedIsNone) {
  const RecordHeader header{.key_bytes = 3, .value_bytes = 29, .version = 9};
  std::vector<std::byte> record = a_record(header);
  for (size_t bit = 0; bit < header.bytes() * 8; ++bit) {
    record[bit / 8] ^= std::byte{static_cast<uint8_t>(1 << bit % 8)};
    EXPECT_FALSE(decode_record(kId, 5, record).has_value()) << bit;
    record[bit / 8] ^= std::byte{static_cast<uint8_t>(1 << bit % 8)};
  }
  EXPECT_TRUE(decode_record(kId, 5, record).has_value());
}

TEST(ValueFormat, OfRandomBytesIsNone) {
  Rng rng(1);
  std::vector<std::byte> bytes(4096);
  for (int i = 0; i < 20000; ++i) {
    rng.fill(MutableBytes(bytes).first(64));
    EXPECT_FALSE(decode_record(kId, 5, bytes).has_value());
    EXPECT_FALSE(decode_bucket(kId, 5, Bytes(bytes).first(512)).has_value());
  }
}

TEST(ValueFormat, PlacesLieInTheLogAndAreAsManyAsPieces) {
  std::vector<uint64_t> places = {1, 99};
  const Bytes bytes = std::as_bytes(std::span(places));
  EXPECT_EQ(decode_places(bytes, 2 * kPieceBytes, 100), places);
  EXPECT_EQ(decode_places(bytes, 2 * kPieceBytes, 99), std::nullopt);
  EXPECT_EQ(decode_places(bytes, 2 * kPieceBytes + 1, 100), std::nullopt);
  EXPECT_EQ(decode_places(bytes, UINT32_MAX, 100), std::nullopt);
}

TEST(ValueFormat, UnitsCountAllPieces) {
  EXPECT_EQ(record_units(1, 0), 2u);
  EXPECT_EQ(record_units(16, 240), 17u);
  const uint64_t piece = (16 + 12 + 65536 + 15) / 16;
  EXPECT_EQ(record_units(8, 65536), (16 + 8 + 8 + 15) / 16 + piece);
}

TEST(TableFormat, SuperblockHasTheseBytesAndIsReadAsItWasWritten) {
  Superblock superblock{.layout = {.block_bytes = 512, .segments = 3, .table_block = 2},
                        .hash_key = {0x0102, 0x0304},
                        .epoch = 9};
  superblock.checkpoint = {.number = 4, .key_from = 10, .key_stable = 11};
  const std::vector<std::byte> body = encode_superblock(superblock);
  ASSERT_EQ(body.size(), 152u);
  EXPECT_EQ(hex(Bytes(body).first(24)),
            "0002000000000000"
            "0300000000000000"
            "0200000000000000");
  EXPECT_EQ(hex(Bytes(body).subspan(64, 32)),
            "0201000000000000"
            "0403000000000000"
            "0900000000000000"
            "0400000000000000");
  const Result<Superblock> read = decode_superblock(body);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, superblock);
  EXPECT_FALSE(decode_superblock(Bytes(body).first(151)).has_value());
  superblock.checkpoint.key_from = 12;
  EXPECT_FALSE(decode_superblock(encode_superblock(superblock)).has_value());
}

TEST(TableFormat, APageIsOfOneCheckpointAndPlace) {
  std::vector<std::byte> page(kPageBytes);
  const std::vector<std::byte> entries(15, std::byte{7});
  encode_page(kId, 4, 2, entries, page);
  const Result<Bytes> read = decode_page(kId, 4, 2, page);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(hex(read->first(16)), "07070707070707070707070707070700");
  EXPECT_FALSE(decode_page(kId, 5, 2, page).has_value());
  EXPECT_FALSE(decode_page(kId, 4, 3, page).has_value());
  page[2000] ^= std::byte{1};
  EXPECT_FALSE(decode_page(kId, 4, 2, page).has_value());
}

TEST(TableFormat, AnEntryLiesInTheLog) {
  std::vector<std::byte> entry(kEntryBytes);
  encode_entry({.length = 3, .place = 0x01020304}, entry);
  EXPECT_EQ(hex(entry), "0304030201");
  EXPECT_EQ(decode_entry(entry), (ChainPlace{.length = 3, .place = 0x01020304}));
  EXPECT_TRUE(is_sound({.length = 3, .place = 97}, 100));
  EXPECT_FALSE(is_sound({.length = 3, .place = 98}, 100));
  EXPECT_FALSE(is_sound({.length = 2, .place = UINT32_MAX}, 100));
  EXPECT_TRUE(is_sound({.length = 0, .place = 0}, 100));
  EXPECT_TRUE(is_sound({.length = 0, .place = ChainPlace::kDamaged}, 100));
  EXPECT_FALSE(is_sound({.length = 0, .place = 2}, 100));
}

}  // namespace
}  // namespace cairn::kv::store
