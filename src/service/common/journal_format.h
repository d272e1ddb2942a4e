// SPDX-License-Identifier: Apache-2.0
// The blocks of a journal (journal.h). Each is written whole or not at all and names the one before
// it, so that what a crash left of a write is never taken for a later one.
//
//   head (64 bytes) | records: length (2 bytes), bytes | zeroes
//
// A half of the area is a checkpoint, blocks of kCheckpoint and one of kCheckpointEnd, and then
// changes. The state in a checkpoint is that of its end: its parts were saved one after the other,
// and changes made between two of them lie between them, as records like all others. (A checkpoint
// that was saved at one instant, as older versions wrote it, is one without such changes.)
//
// All numbers are little-endian; the checksum is the CRC32C of the block with the checksum's own
// bytes zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::drive {

// The id of the label of whoever owns the journal.
using JournalId = std::array<uint64_t, 2>;

struct JournalHead {
  uint64_t magic = 0;
  JournalId id{};
  uint64_t generation =
      0;                  // counts checkpoints from 1; even ones are in the first half of the area
  uint64_t tag = 0;       // drawn at random for each block
  uint64_t previous = 0;  // the tag of the block before; 0 in the first
  uint32_t index = 0;     // of the block in its half
  uint32_t batch = 0;     // the index of the first block that was written together with it
  uint32_t checksum = 0;
  uint16_t used = 0;  // bytes of records
  uint16_t kind = 0;  // JournalBlockKind
};
static_assert(sizeof(JournalHead) == 64);

enum class JournalBlockKind : uint16_t { kCheckpoint = 1, kCheckpointEnd = 2, kChanges = 3 };

inline constexpr size_t kJournalRecordMax = 440;
static_assert(sizeof(JournalHead) + sizeof(uint16_t) + kJournalRecordMax <= 512);
// What a block of a journal holds; larger blocks are not filled up.
inline constexpr size_t kJournalUsedMax = 65534;

// Records one after the other, as they are in blocks.
class JournalRecords {
 public:
  // 1 to kJournalRecordMax bytes.
  void add(Bytes record);
  template <class T>
  void add(const T& record) {
    static_assert(std::has_unique_object_representations_v<T>, "no undefined bytes on a drive");
    add(Bytes(reinterpret_cast<const std::byte*>(&record), sizeof record));
  }
  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }
  Bytes bytes() const { return bytes_; }
  // Whole records at the front, of so many bytes, go.
  void drop(size_t bytes) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(bytes));
  }
  JournalRecords take() { return std::exchange(*this, {}); }

 private:
  std::vector<std::byte> bytes_;
};

// How many whole records at the start of `records` fit a block, in bytes.
size_t records_that_fit(Bytes records, size_t block_size);
// How many blocks they take.
uint64_t blocks_of_records(Bytes records, size_t block_size);

// The first of some records that were read, which leave `records`; none: they make no sense.
std::optional<Bytes> take_record(Bytes& records);

void encode_journal_block(JournalHead head, Bytes records, MutableBytes block);
struct JournalBlock {
  JournalHead head;
  Bytes records;  // of the block; each of its records is whole
};
// None: a block that is no journal's, another journal's, or damaged.
std::optional<JournalBlock> decode_journal_block(const JournalId& id, Bytes block);

}  // namespace cairn::drive
