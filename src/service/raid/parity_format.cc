// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_format.h"

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "service/common/region_set_format.h"
#include "service/common/sealed_format.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kHeadBytes = 64_KiB;  // data and log begin at a multiple of this
constexpr uint64_t kRegionBytesMin = 64_KiB;
constexpr uint64_t kStateMagic = 0x6574617453726150;  // "ParState"
constexpr uint64_t kEntryMagic = 0x797274456e726150;  // "ParnEtry"

struct LabelBody {
  uint64_t rows;
  uint32_t chunk_blocks;
  uint32_t log_blocks;
  uint8_t legs;
  uint8_t parity;
  uint8_t own;
  std::array<uint8_t, 5> unused;
  std::array<LegMember, kSymbolsMax> members;
};
static_assert(sizeof(LabelBody) == 24 + 16 * kSymbolsMax);
static_assert(sizeof(LabelBody) <= kLabelBodyMax);

struct StateBody {
  std::array<uint64_t, 2> id;
  uint64_t epoch;
  uint64_t regions;
  uint64_t sequence;
  uint64_t unused;
};
static_assert(sizeof(Seal) + sizeof(StateBody) == 64);
constexpr uint32_t kStateVersion = 2;  // 1: in block 2 alone, without a sequence
constexpr size_t kBitsOffset = sizeof(Seal) + sizeof(StateBody);

struct EntryBody {
  std::array<uint64_t, 2> id;
  uint64_t epoch;
  uint64_t position;
  uint64_t first_row;
  uint64_t rows;
  uint32_t legs;
  uint32_t content_crc;
  uint64_t is_zeroes;
};
static_assert(sizeof(EntryBody) == 64);

uint64_t head_blocks(uint32_t block_size) {
  return std::max<uint64_t>(kHeadBytes / block_size, kParityStateBlock + 2);
}

size_t regions_max(uint32_t block_size) { return (block_size - kBitsOffset) * 8; }

bool makes_sense(const ParityLabel& label) {
  const bool has_legs = label.legs >= 2 && label.legs <= kSymbolsMax && label.parity >= 1 &&
                        label.parity < label.legs && label.own < label.legs;
  for (size_t i = 0; i < label.legs && i < kSymbolsMax; ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (label.members[k].id == label.members[i].id) return false;
    }
  }
  const bool has_blocks = std::has_single_bit(label.block_size) && label.block_size >= 512 &&
                          label.block_size <= 65536 && label.generation > 0;
  return has_legs && has_blocks && label.chunk_blocks > 0 && label.log_blocks > 1 &&
         label.rows > 0 && label.rows % label.chunk_blocks == 0 &&
         label.rows < UINT64_MAX / label.block_size / (2 * kSymbolsMax);
}

}  // namespace

uint64_t ParityLabel::log_offset() const { return head_blocks(block_size); }
uint64_t ParityLabel::data_offset() const {
  return align_up(log_offset() + log_blocks, head_blocks(block_size));
}
uint64_t ParityLabel::region_rows() const {
  uint64_t rows_each = std::max<uint64_t>(kRegionBytesMin / block_size, 1);
  while ((rows + rows_each - 1) / rows_each > regions_max(block_size)) rows_each *= 2;
  return rows_each;
}

Label encode_parity_label(const ParityLabel& label, uint64_t leg_blocks) {
  const LabelBody body{.rows = label.rows,
                       .chunk_blocks = label.chunk_blocks,
                       .log_blocks = label.log_blocks,
                       .legs = label.legs,
                       .parity = label.parity,
                       .own = label.own,
                       .unused = {},
                       .members = label.members};
  Label encoded{.id = label.id,
                .generation = label.generation,
                .blocks = leg_blocks,
                .block_size = label.block_size,
                .body = std::vector<std::byte>(sizeof body),
                .writer = label.writer,
                .medium = label.medium};
  store(encoded.body, body);
  return encoded;
}

Result<ParityLabel> decode_parity_label(const Label& label) {
  if (label.body.size() != sizeof(LabelBody)) return fail(Errc::kCorrupt, "the label's size");
  const auto body = load<LabelBody>(label.body);
  const ParityLabel decoded{.id = label.id,
                            .generation = label.generation,
                            .block_size = label.block_size,
                            .rows = body.rows,
                            .chunk_blocks = body.chunk_blocks,
                            .log_blocks = body.log_blocks,
                            .legs = body.legs,
                            .parity = body.parity,
                            .own = body.own,
                            .writer = label.writer,
                            .medium = label.medium,
                            .members = body.members};
  if (!makes_sense(decoded)) return fail(Errc::kCorrupt, "the numbers in the label");
  return decoded;
}

void encode_parity_state(const ParityState& state, const ParityLabel& label, MutableBytes block) {
  std::ranges::fill(block, std::byte{0});
  const StateBody body{.id = label.id,
                       .epoch = state.epoch,
                       .regions = state.missed.size(),
                       .sequence = state.sequence,
                       .unused = 0};
  store(block.subspan(sizeof(Seal)), body);
  encode_regions(state.missed, block.subspan(kBitsOffset));
  seal(block, kStateMagic, kStateVersion);
}

Result<ParityState> decode_parity_state(const ParityLabel& label, Bytes block) {
  const auto start = load<Seal>(block);
  const auto body = load<StateBody>(block.subspan(sizeof start));
  const bool is_known =
      start.version == kStateVersion || (start.version == 1 && body.sequence == 0);
  if (start.magic != kStateMagic || !is_known || !is_whole(block) || body.id != label.id ||
      body.regions != label.regions() || body.epoch == 0 || body.epoch == UINT64_MAX ||
      body.sequence == UINT64_MAX) {
    return fail(Errc::kCorrupt, "the state of parity's legs");
  }
  return ParityState{.epoch = body.epoch,
                     .missed = decode_regions(block.subspan(kBitsOffset), label.regions()),
                     .sequence = body.sequence};
}

bool ParityEntry::is_part_of(const ParityEntry& other) const {
  return epoch == other.epoch && position == other.position && first_row == other.first_row &&
         rows == other.rows && legs == other.legs && is_zeroes == other.is_zeroes;
}

void encode_parity_entry(const ParityEntry& entry, const ParityLabel& label, MutableBytes block) {
  std::ranges::fill(block, std::byte{0});
  const EntryBody body{.id = label.id,
                       .epoch = entry.epoch,
                       .position = entry.position,
                       .first_row = entry.first_row,
                       .rows = entry.rows,
                       .legs = entry.legs,
                       .content_crc = entry.content_crc,
                       .is_zeroes = entry.is_zeroes ? uint64_t{1} : 0};
  store(block.subspan(sizeof(Seal)), body);
  seal(block, kEntryMagic, kParityLabel.version);
}

Result<ParityEntry> decode_parity_entry(const ParityLabel& label, Bytes block) {
  const auto start = load<Seal>(block);
  if (start.magic != kEntryMagic || start.version != kParityLabel.version || !is_whole(block)) {
    return fail(Errc::kCorrupt, "an entry of parity's log");
  }
  const auto body = load<EntryBody>(block.subspan(sizeof start));
  const ParityEntry entry{.epoch = body.epoch,
                          .position = body.position,
                          .first_row = body.first_row,
                          .rows = body.rows,
                          .legs = body.legs,
                          .is_zeroes = body.is_zeroes != 0,
                          .content_crc = body.content_crc};
  const bool is_inside = entry.rows > 0 && entry.first_row < label.rows &&
                         entry.rows <= label.rows - entry.first_row &&
                         entry.position < label.log_blocks &&
                         (entry.is_zeroes || entry.rows < label.log_blocks - entry.position);
  const bool has_legs = entry.legs != 0 && (entry.legs & ~first_symbols(label.legs)) == 0;
  if (body.id != label.id || !is_inside || !has_legs) {
    return fail(Errc::kCorrupt, "the numbers in an entry of parity's log");
  }
  return entry;
}

}  // namespace cairn::drive
