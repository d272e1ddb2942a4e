// SPDX-License-Identifier: Apache-2.0
// What a cache on a fast drive keeps, on that drive and on the one it speeds up.
//
//   slow drive    block 0, 1  the label (label.h), its body a SlowState
//                 from data_first on    the data
//   fast drive    block 0, 1  the label, its body a FastState
//                 the journal (journal.h) of FastRecords
//                 from lines_first on   a line in each slot
//
// The two belong together when the fast one names the slow one's id, and when both were opened the
// same number of times, or the fast one once more: it is written first. All numbers are
// little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "service/common/label.h"

namespace cairn::drive {

inline constexpr LabelKind kSlowLabel{.service = "cache", .version = 1};
inline constexpr LabelKind kFastLabel{.service = "cache-fast", .version = 1};
inline constexpr uint32_t kLineBlocksMax = 64;  // a bit each in a mask

struct SlowState {
  uint64_t data_first = 0;
  uint64_t data_blocks = 0;
  uint64_t openings = 0;
  uint64_t needs_fast = 0;  // 1: the fast drive may have newer data
};

struct FastState {
  std::array<uint64_t, 2> slow_id{};
  uint64_t openings = 0;
  uint64_t journal_blocks = 0;
  uint64_t lines_first = 0;
  uint64_t slots = 0;
  uint64_t line_blocks = 0;
};

// A change of the journal: these blocks of a line are in the slot and not on the slow drive.
struct FastRecord {
  uint64_t line = 0;
  uint64_t dirty = 0;  // a bit for each block of the line; 0: the slot holds nothing that matters
  uint64_t slot = 0;
};
static_assert(sizeof(FastRecord) == 24);

std::vector<std::byte> encode_slow_state(const SlowState& state);
std::vector<std::byte> encode_fast_state(const FastState& state);
// kCorrupt: what no such drive can have.
Result<SlowState> decode_slow_state(const Label& label);
Result<FastState> decode_fast_state(const Label& label);
// kCorrupt: a slot or line that there is not.
Result<FastRecord> decode_fast_record(Bytes record, const FastState& fast, const SlowState& slow);

// How a blank fast drive is divided; no slots: it is too small.
FastState divide_fast(uint64_t blocks, uint32_t block_size);

}  // namespace cairn::drive
