// SPDX-License-Identifier: Apache-2.0
// What a store keeps beside its logs: the superblock, which is the body of a label
// (service/common/label.h, two blocks in turn), and checkpoints of the segment table, in pages:
//
//   checksum 4 | page 4 | checkpoint 8 | entries, 5 bytes each | zeroes
//
// An entry is a chain's length (1 byte) and the bucket of the key log at which it begins (4 bytes).
// All numbers are little-endian; a page's checksum is the CRC32C of the store's id and the page
// after the checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sip_hash.h"
#include "kv/store/bucket_format.h"
#include "kv/store/layout.h"
#include "service/common/label.h"

namespace cairn::kv::store {

inline constexpr drive::LabelKind kLabelKind{.service = "kv", .version = 1};

// What a checkpoint says besides the table. All positions count from the start of a log's first
// lap and never go back.
struct Checkpoint {
  uint64_t number = 0;      // its table is in area number % 2; 0: the table is empty
  uint64_t key_from = 0;    // the key log from here on is not, or not wholly, in the table
  uint64_t key_stable = 0;  // before this all is durable; from here on it is of this epoch
  uint64_t value_head = 0;  // as at key_from, as all that follow
  uint64_t value_tail = 0;
  uint64_t keys = 0;
  uint64_t live_units = 0;  // of the value log, that keys point to
  uint64_t next_version = 1;
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

struct Superblock {
  Layout layout;
  SipKey hash_key{};   // drawn when the store is made
  uint64_t epoch = 0;  // counts openings
  Checkpoint checkpoint;
  friend bool operator==(const Superblock&, const Superblock&) = default;
};

std::vector<std::byte> encode_superblock(const Superblock& superblock);
// kCorrupt: it makes no sense. Whether it fits the drive, is_sound() says.
Result<Superblock> decode_superblock(Bytes body);

inline constexpr size_t kEntryBytes = 5;
inline constexpr size_t kPageHeaderBytes = 16;
inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kEntriesInPage = (kPageBytes - kPageHeaderBytes) / kEntryBytes;

// A page takes whole blocks; larger blocks are not filled.
constexpr size_t page_bytes(size_t block_bytes) {
  return block_bytes > kPageBytes ? block_bytes : kPageBytes;
}
constexpr uint64_t pages_of(uint64_t segments) {
  return (segments + kEntriesInPage - 1) / kEntriesInPage;
}

// Where a segment's chain lies, in buckets of the key log.
struct ChainPlace {
  static constexpr uint32_t kDamaged = 1;
  uint8_t length = 0;  // 0: the segment has no keys
  uint32_t place = 0;
  bool is_damaged() const { return length == 0 && place == kDamaged; }
  friend bool operator==(const ChainPlace&, const ChainPlace&) = default;
};
void encode_entry(ChainPlace chain, MutableBytes entry);
ChainPlace decode_entry(Bytes entry);
// Whether such an entry can be, for a log of so many buckets.
bool is_sound(ChainPlace chain, uint64_t key_buckets);

// `entries` are whole entries, at most kEntriesInPage.
void encode_page(const StoreId& id, uint64_t checkpoint, uint32_t page, Bytes entries,
                 MutableBytes to);
// Room for entries, kEntriesInPage of them. kCorrupt: there is no such page, or it is damaged.
Result<Bytes> decode_page(const StoreId& id, uint64_t checkpoint, uint32_t page, Bytes from);

}  // namespace cairn::kv::store
