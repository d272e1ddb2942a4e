// SPDX-License-Identifier: Apache-2.0
// What parity keeps on each of its legs, in blocks before the data.
//
//   block 0, 1             the label (label.h); its body is ParityLabel
//   block 2, 3             the state: the log's epoch, and the regions that legs may lack; newest
//                          in block 2 + (sequence modulo 2)
//   from log_offset() on   the log: entries of one header block and the blocks it speaks of
//   from data_offset() on  the rows
//
// A row is one block of each leg, and these are one word of the code (parity_code.h). A stripe is
// chunk_blocks rows; in stripe s, symbol i of a row lies on leg (i + s) modulo legs. A block that a
// crash tore is known by its checksum; all numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"
#include "service/common/region_set.h"
#include "service/raid/leg.h"
#include "service/raid/parity_code.h"

namespace cairn::drive {

inline constexpr LabelKind kParityLabel{.service = "parity", .version = 1};
inline constexpr uint64_t kParityStateBlock = 2;

// The same on all legs but for `own` and `medium`.
struct ParityLabel {
  std::array<uint64_t, 2> id{};
  uint64_t generation = 0;
  uint32_t block_size = 0;
  uint64_t rows = 0;  // a multiple of chunk_blocks
  uint32_t chunk_blocks = 0;
  uint32_t log_blocks = 0;
  uint8_t legs = 0;
  uint8_t parity = 0;
  uint8_t own = 0;      // which of the members this leg is
  uint64_t writer = 0;  // drawn by each opening (check_writer() in label.h); 0: not known
  uint64_t medium = 0;  // what this leg stands on (base/medium_id.h); 0: not known
  std::array<LegMember, kSymbolsMax> members{};

  uint64_t log_offset() const;
  uint64_t data_offset() const;
  uint64_t region_rows() const;
  size_t regions() const { return (rows + region_rows() - 1) / region_rows(); }
  std::span<const LegMember> membership() const { return std::span(members).first(legs); }
  std::span<LegMember> membership() { return std::span(members).first(legs); }
  const LegMember& own_member() const { return members[own]; }
  uint64_t leg_blocks() const { return data_offset() + rows; }
  friend bool operator==(const ParityLabel&, const ParityLabel&) = default;
};

// The label of a leg with `leg_blocks` blocks.
Label encode_parity_label(const ParityLabel& label, uint64_t leg_blocks);
// kCorrupt: its numbers make no sense.
Result<ParityLabel> decode_parity_label(const Label& label);

struct ParityState {
  uint64_t epoch = 0;     // entries of the log with another one are of the past
  RegionSet missed;       // where legs that are stale may lack something
  uint64_t sequence = 0;  // counts states; 0: of version 1, which had one block
};
inline uint64_t parity_state_block(uint64_t sequence) { return kParityStateBlock + sequence % 2; }
void encode_parity_state(const ParityState& state, const ParityLabel& label, MutableBytes block);
// kCorrupt: damaged, or of other legs.
Result<ParityState> decode_parity_state(const ParityLabel& label, Bytes block);

// One leg's part of a change of rows: the blocks that follow the header are to be written there.
struct ParityEntry {
  uint64_t epoch = 0;
  uint64_t position = 0;  // in the log, in blocks
  uint64_t first_row = 0;
  uint64_t rows = 0;
  SymbolSet legs = 0;        // that have a part of this change in their logs
  bool is_zeroes = false;    // no blocks follow: the rows become zeroes
  uint32_t content_crc = 0;  // of the blocks that follow; the only thing that differs by leg
  // Of the same change.
  bool is_part_of(const ParityEntry& other) const;
  uint64_t blocks() const { return is_zeroes ? 1 : 1 + rows; }
};
void encode_parity_entry(const ParityEntry& entry, const ParityLabel& label, MutableBytes block);
// kCorrupt: no entry of these legs, or one that makes no sense.
Result<ParityEntry> decode_parity_entry(const ParityLabel& label, Bytes block);

}  // namespace cairn::drive
