// SPDX-License-Identifier: Apache-2.0
// What atomic keeps on the drive below it, in blocks before the data.
//
//   block 0, 1            the label (label.h), its body an AtomicLayout
//   from kLabelBlocks on  the log: batches one after the other, each a head and its content
//   from data_first on    the data
//
// A batch is in force if its head has the label's id and generation, the number of batches before
// it, and checksums that are right, its content's too; the log ends where none is. A label of the
// next generation empties it. A checksum is the CRC32C of its bytes, of a head with the checksum's
// own zero; all numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"

namespace cairn::drive {

inline constexpr LabelKind kAtomicLabel{.service = "atomic", .version = 1};

struct AtomicLayout {
  uint64_t log_blocks = 0;
  uint64_t data_first = 0;
  uint64_t data_blocks = 0;
};

std::vector<std::byte> encode_atomic_layout(const AtomicLayout& layout);
// kCorrupt: not what such a drive can have.
Result<AtomicLayout> decode_atomic_layout(const Label& label);

// The head of a batch. The content of its records follows in their order.
struct AtomicBatch {
  struct Record {
    uint64_t first = 0;  // of the data's blocks
    uint64_t blocks = 0;
  };
  // Which batch of which log it is.
  struct Name {
    std::array<uint64_t, 2> id{};
    uint64_t generation = 0;
    uint64_t index = 0;
    friend bool operator==(const Name&, const Name&) = default;
  };
  Name name;
  uint32_t content_checksum = 0;
  std::vector<Record> records;

  uint64_t content_blocks() const;
};

// How many records a head of one block has room for.
size_t atomic_records_max(uint32_t block_size);
// `block` is a whole block with room for the records.
void encode_atomic_batch(const AtomicBatch& batch, MutableBytes block);
// The head of the batch of that name. kNotFound: another one, or none, or torn. kCorrupt: it points
// past the data or has no room in a log with so many blocks left.
Result<AtomicBatch> decode_atomic_batch(Bytes block, const AtomicBatch::Name& name,
                                        const AtomicLayout& layout, uint64_t blocks_left);

}  // namespace cairn::drive
