// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/atomic_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kMagic = 0x68637461426e7243;  // "CrnBatch"

struct Body {
  uint64_t log_blocks;
  uint64_t data_first;
  uint64_t data_blocks;
};
static_assert(sizeof(Body) == 24);

struct Head {
  uint64_t magic;
  std::array<uint64_t, 2> id;
  uint64_t generation;
  uint64_t index;
  uint32_t checksum;
  uint32_t content_checksum;
  uint64_t record_count;
};
static_assert(sizeof(Head) == 56);

struct Record {
  uint64_t first;
  uint64_t blocks;
};
static_assert(sizeof(Record) == 16);

bool is_whole(Bytes block, Head head) {
  const uint32_t checksum = std::exchange(head.checksum, 0);
  const Bytes start(reinterpret_cast<const std::byte*>(&head), sizeof head);
  return crc32c(block.subspan(sizeof head), crc32c(start)) == checksum;
}

}  // namespace

std::vector<std::byte> encode_atomic_layout(const AtomicLayout& layout) {
  std::vector<std::byte> body(sizeof(Body));
  store(MutableBytes(body), Body{.log_blocks = layout.log_blocks,
                                 .data_first = layout.data_first,
                                 .data_blocks = layout.data_blocks});
  return body;
}

Result<AtomicLayout> decode_atomic_layout(const Label& label) {
  if (label.body.size() != sizeof(Body)) return fail(Errc::kCorrupt, "the label makes no sense");
  const auto body = load<Body>(label.body);
  const bool fits = body.log_blocks >= 2 && body.data_first >= kLabelBlocks &&
                    body.log_blocks <= body.data_first - kLabelBlocks &&
                    body.data_first < label.blocks && body.data_blocks > 0 &&
                    body.data_blocks <= label.blocks - body.data_first;
  if (!fits) return fail(Errc::kCorrupt, "the label makes no sense");
  return AtomicLayout{.log_blocks = body.log_blocks,
                      .data_first = body.data_first,
                      .data_blocks = body.data_blocks};
}

uint64_t AtomicBatch::content_blocks() const {
  uint64_t blocks = 0;
  for (const Record& record : records) blocks += record.blocks;
  return blocks;
}

size_t atomic_records_max(uint32_t block_size) {
  return (block_size - sizeof(Head)) / sizeof(Record);
}

void encode_atomic_batch(const AtomicBatch& batch, MutableBytes block) {
  CHECK(batch.records.size() <= atomic_records_max(static_cast<uint32_t>(block.size())));
  std::ranges::fill(block, std::byte{0});
  Head head{.magic = kMagic,
            .id = batch.name.id,
            .generation = batch.name.generation,
            .index = batch.name.index,
            .checksum = 0,
            .content_checksum = batch.content_checksum,
            .record_count = batch.records.size()};
  store(block, head);
  size_t at = sizeof head;
  for (const AtomicBatch::Record& record : batch.records) {
    store(block.subspan(at), Record{.first = record.first, .blocks = record.blocks});
    at += sizeof(Record);
  }
  head.checksum = crc32c(block);
  store(block, head);
}

Result<AtomicBatch> decode_atomic_batch(Bytes block, const AtomicBatch::Name& name,
                                        const AtomicLayout& layout, uint64_t blocks_left) {
  const auto head = load<Head>(block);
  const AtomicBatch::Name found{.id = head.id, .generation = head.generation, .index = head.index};
  if (head.magic != kMagic || found != name || !is_whole(block, head)) {
    return fail(Errc::kNotFound, "here is no such batch");
  }
  const auto wrong = fail(Errc::kCorrupt, "a batch of the log makes no sense");
  if (blocks_left == 0 ||
      head.record_count > atomic_records_max(static_cast<uint32_t>(block.size()))) {
    return wrong;
  }
  AtomicBatch batch{.name = name, .content_checksum = head.content_checksum, .records = {}};
  uint64_t used = 1;
  for (size_t i = 0; i < head.record_count; ++i) {
    const auto record = load<Record>(block.subspan(sizeof head + i * sizeof(Record)));
    if (record.first >= layout.data_blocks || record.blocks == 0 ||
        record.blocks > layout.data_blocks - record.first || record.blocks > blocks_left - used) {
      return wrong;
    }
    used += record.blocks;
    batch.records.push_back({.first = record.first, .blocks = record.blocks});
  }
  return batch;
}

}  // namespace cairn::drive
