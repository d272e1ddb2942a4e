// SPDX-License-Identifier: Apache-2.0
// Buckets: how keys lie in the key log. A segment is a chain of buckets that follow each other, and
// is written as a whole; buckets that were written together are a batch, which counts when all of
// it is there.
//
//   header (32 bytes) | items (30 bytes each) | zeroes
//
// header  0 checksum 4, 4 segment 4, 8 magic 2, 10 epoch 2, 12 batch 2, 14 unstable 2,
//         16 chain length 1, 17 chain index 1, 18 items 2, 20 key delta 2, 22 value head 6,
//         28 unit delta 4
// item    0 fingerprint 8, 8 place (39 bits) and value size (25 bits) 8, 16 version 6,
//         22 expires (47 bits) and fresh (1 bit) 6, 28 key size - 1 2
//
// All numbers are little-endian. The checksum is the CRC32C of the store's id, the bucket's
// position in the log (8 bytes each, not stored) and the bucket after the checksum: a bucket of
// another store, another place or another lap of the log is none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::kv::store {

using StoreId = std::array<uint64_t, 2>;

inline constexpr size_t kBucketHeaderBytes = 32;
inline constexpr size_t kItemBytes = 30;
inline constexpr uint32_t kNoSegment = 0xffffffff;
inline constexpr size_t kChainMax = 255;
inline constexpr size_t kBatchBucketsMax = 0x7fff;
inline constexpr uint64_t kKeyBucketsMin = 512;  // of a log
inline constexpr uint16_t kUnstableUnknown = 0xffff;

constexpr size_t items_in_bucket(size_t bucket_bytes) {
  return (bucket_bytes - kBucketHeaderBytes) / kItemBytes;
}
static_assert(items_in_bucket(512) == 16);
// At least one: a segment without keys is written as an empty bucket.
constexpr size_t buckets_of(size_t items, size_t bucket_bytes) {
  const size_t each = items_in_bucket(bucket_bytes);
  return items == 0 ? 1 : (items + each - 1) / each;
}

// What is known of a key: who it is, and where its value lies.
struct Item {
  uint64_t fingerprint = 0;  // with the segment, it stands for the key (key_hash.h)
  uint64_t place = 0;        // in the value log, in units from the log's first
  uint32_t value_bytes = 0;
  uint32_t key_bytes = 0;   // 1 to 65536
  uint64_t version = 0;     // 48 bits
  uint64_t expires_ms = 0;  // since 1970; 0: never
  bool is_fresh = false;    // it changed in the write that holds it
  friend bool operator==(const Item&, const Item&) = default;
};

struct BucketHeader {
  uint32_t segment = kNoSegment;  // kNoSegment: the log goes on at its first bucket
  uint16_t epoch = 0;             // counts the openings of the store
  bool starts_batch = false;
  uint16_t batch_left = 0;  // buckets of the batch from this one on
  // So many buckets before the batch began, and all before them, were durable when it was written.
  uint16_t unstable = 0;
  uint8_t chain_length = 0;
  uint8_t chain_index = 0;
  uint16_t items = 0;
  // In the first bucket of a chain: by how much this write changed the store's numbers.
  int16_t key_delta = 0;
  int32_t unit_delta = 0;
  uint64_t value_head = 0;  // of the value log, 48 bits
  friend bool operator==(const BucketHeader&, const BucketHeader&) = default;
};

// Writes one bucket; `items` are header.items.
void encode_bucket(const StoreId& id, uint64_t position, const BucketHeader& header,
                   std::span<const Item> items, MutableBytes bucket);

// The header of a bucket. kCorrupt: there is no bucket of this store and position, or it is
// damaged.
Result<BucketHeader> decode_bucket(const StoreId& id, uint64_t position, Bytes bucket);
// How many items a bucket has that was decoded.
size_t item_count_of_bucket(Bytes bucket);
// The nth item of a bucket that was decoded; n is below header.items.
Item item_of_bucket(Bytes bucket, size_t n);
// Likewise, without the rest of it.
uint64_t fingerprint_of_bucket(Bytes bucket, size_t n);

// A segment as it was read, all buckets of its chain, for one that looks something up in place.
// kCorrupt: a bucket is damaged, or it is not this segment.
Result<void> check_chain(const StoreId& id, uint64_t position, uint32_t segment, Bytes chain,
                         size_t bucket_bytes);
// Its items, none of them fresh.
void append_items(Bytes chain, size_t bucket_bytes, std::vector<Item>& items);

}  // namespace cairn::kv::store
