// SPDX-License-Identifier: Apache-2.0
#include "service/common/journal_format.h"

#include <algorithm>

#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kMagic = 0x6c6e724a6e726143;  // "CarnJrnl"

size_t room_in(size_t block_size) {
  return std::min(block_size - sizeof(JournalHead), kJournalUsedMax);
}

bool is_whole(Bytes block, JournalHead head) {
  const uint32_t checksum = std::exchange(head.checksum, 0);
  const Bytes start(reinterpret_cast<const std::byte*>(&head), sizeof head);
  return crc32c(block.subspan(sizeof head), crc32c(start)) == checksum;
}

}  // namespace

void JournalRecords::add(Bytes record) {
  CHECK(!record.empty() && record.size() <= kJournalRecordMax);
  const auto size = static_cast<uint16_t>(record.size());
  const size_t at = bytes_.size();
  bytes_.resize(at + sizeof size + record.size());
  store(MutableBytes(bytes_).subspan(at), size);
  std::ranges::copy(record, bytes_.begin() + static_cast<ptrdiff_t>(at + sizeof size));
}

size_t records_that_fit(Bytes records, size_t block_size) {
  size_t fit = 0;
  Bytes rest = records;
  while (take_record(rest)) {
    const size_t taken = records.size() - rest.size();
    if (taken > room_in(block_size)) break;
    fit = taken;
  }
  return fit;
}

uint64_t blocks_of_records(Bytes records, size_t block_size) {
  uint64_t blocks = 0;
  for (; !records.empty(); ++blocks) {
    records = records.subspan(records_that_fit(records, block_size));
  }
  return blocks;
}

std::optional<Bytes> take_record(Bytes& records) {
  if (records.size() < sizeof(uint16_t)) return std::nullopt;
  const size_t size = load<uint16_t>(records);
  if (size == 0 || size > kJournalRecordMax || size > records.size() - sizeof(uint16_t)) {
    return std::nullopt;
  }
  const Bytes record = records.subspan(sizeof(uint16_t), size);
  records = records.subspan(sizeof(uint16_t) + size);
  return record;
}

void encode_journal_block(JournalHead head, Bytes records, MutableBytes block) {
  CHECK(records.size() <= room_in(block.size()));
  std::ranges::fill(block, std::byte{0});
  head.magic = kMagic;
  head.used = static_cast<uint16_t>(records.size());
  head.checksum = 0;
  store(block, head);
  std::ranges::copy(records, block.begin() + sizeof head);
  head.checksum = crc32c(block);
  store(block, head);
}

std::optional<JournalBlock> decode_journal_block(const JournalId& id, Bytes block) {
  const auto head = load<JournalHead>(block);
  if (head.magic != kMagic || head.id != id || !is_whole(block, head)) return std::nullopt;
  if (head.used > room_in(block.size()) || head.batch > head.index || head.kind < 1 ||
      head.kind > 3) {
    return std::nullopt;
  }
  const Bytes records = block.subspan(sizeof head, head.used);
  for (Bytes rest = records; !rest.empty();) {
    if (!take_record(rest)) return std::nullopt;
  }
  return JournalBlock{.head = head, .records = records};
}

}  // namespace cairn::drive
