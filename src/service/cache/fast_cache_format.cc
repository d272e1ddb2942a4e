// SPDX-License-Identifier: Apache-2.0
#include "service/cache/fast_cache_format.h"

#include <algorithm>

#include "base/units.h"
#include "service/common/journal.h"

namespace cairn::drive {

namespace {

static_assert(sizeof(SlowState) == 32 && sizeof(FastState) == 56, "both are their own format");

template <class T>
std::vector<std::byte> encode(const T& state) {
  std::vector<std::byte> body(sizeof state);
  store(MutableBytes(body), state);
  return body;
}

constexpr auto kNonsense = fail(Errc::kCorrupt, "the label makes no sense");

}  // namespace

std::vector<std::byte> encode_slow_state(const SlowState& state) { return encode(state); }
std::vector<std::byte> encode_fast_state(const FastState& state) { return encode(state); }

Result<SlowState> decode_slow_state(const Label& label) {
  if (label.body.size() != sizeof(SlowState)) return kNonsense;
  const auto state = load<SlowState>(label.body);
  const bool fits = state.data_first >= kLabelBlocks && state.data_first < label.blocks &&
                    state.data_blocks > 0 && state.data_blocks <= label.blocks - state.data_first &&
                    state.needs_fast <= 1;
  if (!fits) return kNonsense;
  return state;
}

Result<FastState> decode_fast_state(const Label& label) {
  if (label.body.size() != sizeof(FastState)) return kNonsense;
  const auto state = load<FastState>(label.body);
  const bool fits = state.line_blocks > 0 && state.line_blocks <= kLineBlocksMax &&
                    state.lines_first >= kLabelBlocks &&
                    state.journal_blocks <= state.lines_first - kLabelBlocks &&
                    state.lines_first < label.blocks && state.slots > 0 &&
                    state.slots < UINT32_MAX &&
                    state.slots <= (label.blocks - state.lines_first) / state.line_blocks;
  if (!fits) return kNonsense;
  return state;
}

Result<FastRecord> decode_fast_record(Bytes record, const FastState& fast, const SlowState& slow) {
  const auto wrong = fail(Errc::kCorrupt, "the cache's journal makes no sense");
  if (record.size() != sizeof(FastRecord)) return wrong;
  const auto read = load<FastRecord>(record);
  const uint64_t line_last = (slow.data_blocks - 1) / fast.line_blocks;
  if (read.slot >= fast.slots || read.line > line_last) return wrong;
  const uint64_t first = read.line * fast.line_blocks;
  const uint64_t blocks = std::min(fast.line_blocks, slow.data_blocks - first);
  if (blocks < 64 && read.dirty >> blocks != 0) return wrong;
  return read;
}

FastState divide_fast(uint64_t blocks, uint32_t block_size) {
  FastState state;
  state.line_blocks = std::clamp<uint64_t>(64_KiB / block_size, 1, kLineBlocksMax);
  state.slots = std::min<uint64_t>(blocks / state.line_blocks, UINT32_MAX - 1);
  state.journal_blocks = Journal::blocks_for(state.slots, sizeof(FastRecord), block_size);
  state.lines_first = align_up(kLabelBlocks + state.journal_blocks, state.line_blocks);
  const uint64_t room = blocks > state.lines_first ? blocks - state.lines_first : 0;
  state.slots = std::min(state.slots, room / state.line_blocks);
  return state;
}

}  // namespace cairn::drive
