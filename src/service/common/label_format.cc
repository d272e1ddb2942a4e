// SPDX-License-Identifier: Apache-2.0
#include "service/common/label_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kMagic = 0x6c6562614c6e7243;  // "CrnLabel"

struct Head {
  uint64_t magic;
  std::array<char, kLabelServiceMax + 1> service;
  uint32_t version;
  uint32_t checksum;
  std::array<uint64_t, 2> id;
  uint64_t generation;
  uint64_t blocks;
  uint32_t block_size;
  uint32_t body_size;
};
static_assert(sizeof(Head) == 72);
// Of the first 512 bytes the last ones are medium and writer; they were zero before there were any.
constexpr size_t kWriterOffset = 512 - sizeof(uint64_t);
constexpr size_t kMediumOffset = kWriterOffset - sizeof(uint64_t);
static_assert(sizeof(Head) + kLabelBodyMax <= kMediumOffset);

bool is_blank(Bytes block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{0}; });
}

bool is_whole(Bytes block, Head head) {
  const uint32_t checksum = std::exchange(head.checksum, 0);
  const Bytes start(reinterpret_cast<const std::byte*>(&head), sizeof head);
  return crc32c(block.subspan(sizeof head), crc32c(start)) == checksum;
}

}  // namespace

void encode_label(const LabelKind& kind, const Label& label, MutableBytes block) {
  CHECK(kind.service.size() <= kLabelServiceMax && label.body.size() <= kLabelBodyMax);
  std::ranges::fill(block, std::byte{0});
  Head head{.magic = kMagic,
            .service = {},
            .version = kind.version,
            .checksum = 0,
            .id = label.id,
            .generation = label.generation,
            .blocks = label.blocks,
            .block_size = label.block_size,
            .body_size = static_cast<uint32_t>(label.body.size())};
  std::ranges::copy(kind.service, head.service.begin());
  store(block, head);
  std::ranges::copy(label.body, block.begin() + sizeof head);
  store(block.subspan(kMediumOffset), label.medium);
  store(block.subspan(kWriterOffset), label.writer);
  head.checksum = crc32c(block);
  store(block, head);
}

Result<Label> decode_label(const LabelKind& kind, Bytes block) {
  if (is_blank(block)) return fail(Errc::kNotFound, "there is no label");
  const auto head = load<Head>(block);
  if (head.magic != kMagic) {
    return fail(Errc::kInvalid, "the drive below holds something else");
  }
  if (!is_whole(block, head)) return fail(Errc::kCorrupt, "the label is damaged");
  if (strnlen(head.service.data(), head.service.size()) != kind.service.size() ||
      !std::ranges::equal(kind.service,
                          std::string_view(head.service.data(), kind.service.size()))) {
    return fail(Errc::kInvalid, "the drive below was made by another service of a stack");
  }
  if (head.version != kind.version) {
    return fail(Errc::kUnsupported, "the drive below has another version of this format; version",
                static_cast<int32_t>(head.version));
  }
  if (head.body_size > kLabelBodyMax || head.generation == 0 || head.block_size != block.size()) {
    return fail(Errc::kCorrupt, "the label makes no sense");
  }
  const Bytes body = block.subspan(sizeof head, head.body_size);
  return Label{.id = head.id,
               .generation = head.generation,
               .blocks = head.blocks,
               .block_size = head.block_size,
               .body = {body.begin(), body.end()},
               .writer = load<uint64_t>(block.subspan(kWriterOffset)),
               .medium = load<uint64_t>(block.subspan(kMediumOffset))};
}

std::optional<LabelStamp> decode_label_stamp(const std::array<uint64_t, 2>& id, Bytes block) {
  const auto head = load<Head>(block);
  if (head.magic != kMagic || head.id != id || !is_whole(block, head)) return std::nullopt;
  return LabelStamp{.generation = head.generation,
                    .writer = load<uint64_t>(block.subspan(kWriterOffset))};
}

}  // namespace cairn::drive
