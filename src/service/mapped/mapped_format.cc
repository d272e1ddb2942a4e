// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/mapped_format.h"

#include <algorithm>
#include <bit>

#include "service/common/label.h"

namespace cairn::drive {

namespace {

// Of a drive whose user did not choose, so that small drives have some too.
constexpr uint64_t kUnitsWanted = 256;
constexpr uint64_t kUnitsMin = 4;
constexpr uint64_t kBytesMax = uint64_t{1} << 62;

uint64_t chunk_for(const Geometry& below, const MappedPlan& plan) {
  if (plan.chunk_bytes != 0) return plan.chunk_bytes;
  const uint64_t wanted = std::bit_floor(std::max<uint64_t>(below.bytes() / kUnitsWanted, 1));
  return std::clamp<uint64_t>(wanted, below.block_size,
                              std::max<uint64_t>(plan.chunk_bytes_max, below.block_size));
}

MappedLayout with_units(uint64_t units, uint64_t chunk_blocks, uint32_t block_size,
                        const MappedPlan& plan) {
  const uint64_t records = units * plan.records_per_unit + plan.records_more;
  const uint64_t journal = Journal::blocks_for(records, plan.record_size, block_size);
  return {.blocks = units * chunk_blocks,
          .chunk_blocks = chunk_blocks,
          .journal_first = kLabelBlocks,
          .journal_blocks = journal,
          .data_first = align_up(kLabelBlocks + journal, chunk_blocks),
          .units = units};
}

}  // namespace

Result<MappedLayout> plan_layout(const Geometry& below, const MappedPlan& plan) {
  const uint64_t chunk = chunk_for(below, plan);
  if (!std::has_single_bit(chunk) || chunk < below.block_size) {
    return fail(Errc::kInvalid, "the chunk is no power of two of at least one block, in bytes",
                static_cast<int32_t>(below.block_size));
  }
  const uint64_t chunk_blocks = chunk / below.block_size;
  const auto fits = [&](uint64_t units) {
    const MappedLayout layout = with_units(units, chunk_blocks, below.block_size, plan);
    return layout.data_first <= below.blocks &&
           units <= (below.blocks - layout.data_first) / chunk_blocks;
  };
  uint64_t min = 0;
  uint64_t max = std::min(below.blocks / chunk_blocks, kMappedChunksMax - 2);
  while (min < max) {
    const uint64_t middle = (min + max + 1) / 2;
    if (fits(middle)) {
      min = middle;
    } else {
      max = middle - 1;
    }
  }
  if (min < kUnitsMin) {
    return fail(Errc::kInvalid,
                "the drive below is too small for four chunks and their map: use a larger drive or "
                "a smaller chunk");
  }
  return with_units(min, chunk_blocks, below.block_size, plan);
}

std::vector<std::byte> encode_layout(const MappedLayout& layout) {
  std::vector<std::byte> body(sizeof layout);
  store(MutableBytes(body), layout);
  return body;
}

Result<MappedLayout> decode_layout(Bytes body, const Geometry& below) {
  if (body.size() != sizeof(MappedLayout)) {
    return fail(Errc::kCorrupt, "the label has another size than this version writes");
  }
  const auto layout = load<MappedLayout>(body);
  const bool is_right = std::has_single_bit(layout.chunk_blocks) &&
                        layout.chunk_blocks <= below.blocks && layout.blocks > 0 &&
                        layout.blocks <= kBytesMax / below.block_size &&
                        layout.blocks / layout.chunk_blocks < kMappedChunksMax - 1 &&
                        layout.journal_first == kLabelBlocks && layout.data_first <= below.blocks &&
                        layout.journal_blocks < layout.data_first &&
                        layout.journal_blocks <= layout.data_first - layout.journal_first &&
                        layout.units > 0 && layout.units < kMappedChunksMax &&
                        layout.units <= (below.blocks - layout.data_first) / layout.chunk_blocks;
  if (!is_right) return fail(Errc::kCorrupt, "the label does not fit the drive below");
  return layout;
}

}  // namespace cairn::drive
