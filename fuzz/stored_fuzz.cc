// SPDX-License-Identifier: Apache-2.0
// Any bytes as what volumes, their arbiter and stores of keys keep on drives and in the metadata
// store: what is understood keeps its limits and is the same when it is written again. The first
// byte says which record is meant; checksums are made right, because a stranger can do that too.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arbiter/record_format.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "kv/store/bucket_format.h"
#include "kv/store/table_format.h"
#include "kv/store/value_format.h"
#include "service/common/sealed_format.h"
#include "volume/intent_format.h"
#include "volume/mega_vol_format.h"

namespace cairn {
namespace {

constexpr kv::store::StoreId kStore = {0x1111, 0x2222};
constexpr uint64_t kPosition = 99;
constexpr size_t kBucketBytes = 512;

// A record of a pool with the head that it should have.
std::string framed(uint8_t kind, Bytes body, uint8_t version = 1) {
  const std::byte head[] = {std::byte{kind}, std::byte{version}};
  const uint32_t checksum = crc32c(body, crc32c(head));
  std::string bytes{static_cast<char>(kind), static_cast<char>(version), 0, 0};
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes + std::string(as_text(body));
}

template <class Decode>
void check_record(uint8_t kind, Bytes body, Decode decode, uint8_t version = 1) {
  const std::string bytes = framed(kind, body, version);
  const auto record = decode(as_bytes(bytes));
  if (record) CHECK(arbiter::encode(*record) == bytes);
}

// A volume of the version before is written as one of the newest, and says the same.
void check_volume(Bytes body) {
  check_record(3, body, arbiter::decode_volume, 2);
  const Result<arbiter::VolumeRecord> old = arbiter::decode_volume(as_bytes(framed(3, body)));
  if (!old) return;
  const std::string anew = arbiter::encode(*old);
  const Result<arbiter::VolumeRecord> again = arbiter::decode_volume(as_bytes(anew));
  CHECK(again && *again == *old);
}

void check_cleaning(Bytes body) {
  const std::string bytes = framed(5, body);
  const Result<std::vector<uint32_t>> extents = arbiter::decode_cleaning(as_bytes(bytes));
  if (!extents) return;
  CHECK(extents->size() <= arbiter::kCleaningMax);
  CHECK(arbiter::encode_cleaning(*extents) == bytes);
}

// Keys were asked for by what they begin with.
void check_keys(Bytes body) {
  const std::string map = arbiter::kMapPrefix + std::string(as_text(body));
  if (const Result<arbiter::MapKey> key = arbiter::parse_map_key(map)) {
    CHECK(arbiter::map_key(key->volume, key->chunk) == map);
  }
  const std::string cleaning = arbiter::kCleaningPrefix + std::string(as_text(body));
  if (const Result<arbiter::CleaningKey> key = arbiter::parse_cleaning_key(cleaning)) {
    CHECK(arbiter::cleaning_key(key->mega_vol, key->number) == cleaning);
  }
}

void check_label(Bytes body) {
  const Result<volume::MegaVolLabel> label = volume::decode_mega_vol(body);
  if (label) CHECK(std::ranges::equal(volume::encode_mega_vol(*label), body));
}

// As many bytes as a block has; what is missing is zero.
std::vector<std::byte> block_of(Bytes bytes, size_t size) {
  std::vector<std::byte> block(size);
  std::ranges::copy(bytes.first(std::min(bytes.size(), size)), block.begin());
  return block;
}

void check_intents(Bytes body) {
  std::vector<std::byte> block = block_of(body, volume::kIntentBytes);
  const Bytes bytes = block;
  drive::seal(block, load<uint64_t>(bytes), load<uint32_t>(bytes.subspan(8)));
  const volume::VolumeId id(load<uint64_t>(bytes.subspan(16)));
  const auto record = volume::decode_intents(block, id);
  if (!record || !*record) return;
  CHECK((**record).marks.size() <= volume::kIntentRegionsMax);
  std::vector<std::byte> once(volume::kIntentBytes);
  volume::encode_intents(**record, once);
  const auto again = volume::decode_intents(once, id);
  CHECK(again && *again);
  std::vector<std::byte> twice(volume::kIntentBytes);
  volume::encode_intents(**again, twice);
  CHECK(once == twice);
}

// The checksum of `bytes`, which lies in their first four.
void seal_at(uint64_t position, MutableBytes bytes) {
  const std::array<uint64_t, 3> seal = {kStore[0], kStore[1], position};
  const Bytes sealed = bytes.subspan(sizeof(uint32_t));
  store(bytes, crc32c(sealed, crc32c(std::as_bytes(std::span(seal)))));
}

void check_buckets(Bytes body) {
  const size_t count = std::clamp<size_t>(body.size() / kBucketBytes, 1, 4);
  std::vector<std::byte> chain = block_of(body, count * kBucketBytes);
  for (size_t i = 0; i < count; ++i) {
    const MutableBytes bucket = MutableBytes(chain).subspan(i * kBucketBytes, kBucketBytes);
    seal_at(kPosition + i, bucket);
    const auto header = kv::store::decode_bucket(kStore, kPosition + i, bucket);
    if (!header) continue;
    std::vector<kv::store::Item> items;
    for (size_t n = 0; n < header->items; ++n) {
      items.push_back(kv::store::item_of_bucket(bucket, n));
      CHECK(items.back().fingerprint == kv::store::fingerprint_of_bucket(bucket, n));
    }
    std::vector<std::byte> written(kBucketBytes);
    kv::store::encode_bucket(kStore, kPosition + i, *header, items, written);
    const auto again = kv::store::decode_bucket(kStore, kPosition + i, written);
    CHECK(again && *again == *header);
    for (size_t n = 0; n < header->items; ++n) {
      CHECK(kv::store::item_of_bucket(written, n) == items[n]);
    }
  }
  const auto segment = load<uint32_t>(Bytes(chain).subspan(4));
  if (!kv::store::check_chain(kStore, kPosition, segment, chain, kBucketBytes)) return;
  std::vector<kv::store::Item> items;
  kv::store::append_items(chain, kBucketBytes, items);
  CHECK(items.size() <= count * kv::store::items_in_bucket(kBucketBytes));
}

void check_value(Bytes body) {
  std::vector<std::byte> bytes =
      block_of(body, std::max(body.size(), kv::store::kRecordHeaderBytes));
  const Bytes from = bytes;
  const auto field = load<uint32_t>(from.subspan(4));
  size_t size = kv::store::kRecordHeaderBytes;
  if (field >> 28 != static_cast<uint32_t>(kv::store::RecordKind::kSkip)) {
    size += (field & 0xfffffff) + load<uint16_t>(from.subspan(8)) + 1;
  }
  if (size <= bytes.size()) seal_at(kPosition, MutableBytes(bytes).first(size));
  const auto record = kv::store::decode_record(kStore, kPosition, from);
  if (!record) {
    [[maybe_unused]] const bool is_cut_short = kv::store::is_cut_short(from);
    return;
  }
  CHECK(record->header.bytes() <= from.size() && !kv::store::is_cut_short(from));
  CHECK(record->key.size() == record->header.key_bytes);
  CHECK(record->value.size() == record->header.value_bytes);
  if (record->header.kind != kv::store::RecordKind::kPieces) return;
  const uint64_t value_bytes =
      record->value.size() / kv::store::kPlaceBytes * kv::store::kPieceBytes;
  const auto places = kv::store::decode_places(record->value, value_bytes, 1 << 20);
  if (!places) return;
  CHECK(places->size() == kv::store::pieces_of(value_bytes));
  for (const uint64_t place : *places) CHECK(place < 1 << 20);
}

void check_superblock(Bytes body) {
  const auto superblock = kv::store::decode_superblock(body);
  if (superblock) CHECK(std::ranges::equal(kv::store::encode_superblock(*superblock), body));
}

void check_page(Bytes body) {
  std::vector<std::byte> bytes = block_of(body, kv::store::kPageBytes);
  const Bytes sealed = Bytes(bytes).subspan(sizeof(uint32_t));
  store(bytes, crc32c(sealed, crc32c(std::as_bytes(std::span(kStore)))));
  const auto page = load<uint32_t>(sealed);
  const auto checkpoint = load<uint64_t>(sealed.subspan(4));
  const Result<Bytes> entries = kv::store::decode_page(kStore, checkpoint, page, bytes);
  CHECK(entries && entries->size() == kv::store::kEntriesInPage * kv::store::kEntryBytes);
  CHECK(!kv::store::decode_page(kStore, checkpoint + 1, page, bytes));
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const Bytes body = bytes.subspan(1);
  switch (std::to_integer<uint8_t>(bytes[0]) % 13) {
    case 0:
      check_record(1, body, arbiter::decode_pool);
      break;
    case 1:
      check_record(2, body, arbiter::decode_drive);
      break;
    case 2:
      check_volume(body);
      break;
    case 3:
      check_record(4, body, arbiter::decode_map);
      break;
    case 4:
      check_cleaning(body);
      break;
    case 5:
      check_keys(body);
      break;
    case 6:
      check_label(body);
      break;
    case 7:
      check_intents(body);
      break;
    case 8:
      check_buckets(body);
      break;
    case 9:
      check_value(body);
      break;
    case 10:
      check_superblock(body);
      break;
    case 12:
      check_record(16, body, arbiter::decode_share);
      break;
    default:
      check_page(body);
      break;
  }
  return 0;
}
