// SPDX-License-Identifier: Apache-2.0
// Whether two drives belong together as a cache: judged by their labels, before anything is
// written.
#include <optional>
#include <utility>

#include "base/units.h"
#include "service/cache/fast_cache.h"
#include "service/layout/layout.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kHeadBytes = 64_KiB;  // before the data, so that it stays aligned

Result<SlowState> slow_state(const std::optional<Label>& label, const Geometry& shape) {
  if (label) return decode_slow_state(*label);
  SlowState state{.data_first = std::max<uint64_t>(kHeadBytes / shape.block_size, kLabelBlocks)};
  if (shape.blocks <= state.data_first) {
    return fail(Errc::kInvalid, "the slow drive is too small for a cache: use 128K or more");
  }
  state.data_blocks = shape.blocks - state.data_first;
  return state;
}

// `slow_label` and `slow` are those of the slow drive; none: it is blank.
Result<FastState> fast_state(const std::optional<Label>& label, const Geometry& shape,
                             const std::optional<Label>& slow_label, const SlowState& slow) {
  if (!label) {
    if (slow.needs_fast != 0) {
      return fail(Errc::kInvalid,
                  "the fast drive is blank, and the slow one's own may have newer data: name that");
    }
    const FastState made = divide_fast(shape.blocks, shape.block_size);
    if (made.slots == 0) {
      return fail(Errc::kInvalid, "the fast drive is too small for a cache: use 1M or more");
    }
    return made;
  }
  Result<FastState> state = decode_fast_state(*label);
  if (!state) return state;
  if (!slow_label || state->slow_id != slow_label->id) {
    return fail(Errc::kInvalid,
                "the fast drive belongs to another one; to use it nevertheless, discard its first "
                "64K: what only it has is lost");
  }
  if (state->openings != slow.openings && state->openings != slow.openings + 1) {
    return fail(Errc::kInvalid,
                "one of the two drives is of another time: it was restored, or used without the "
                "other. The fast one was opened that often",
                static_cast<int32_t>(state->openings));
  }
  return state;
}

}  // namespace

task::Task<Result<std::unique_ptr<Drive>>> open_fast_cache(ServiceParts parts) {
  const std::string& mode = parts.options.text("mode");
  if (mode != "through" && mode != "back") {
    co_return fail(Errc::kInvalid, "mode is through or back");
  }
  if (Result<void> same = check_same_blocks(parts.below); !same) co_return fail(same.error());
  Drive& slow = *parts.below[0];
  Drive& fast = *parts.below[1];
  Result<std::optional<Label>> slow_label =
      co_await find_label(parts.env, slow, kSlowLabel, {.may_format = parts.may_format});
  if (!slow_label) co_return fail(slow_label.error());
  Result<std::optional<Label>> fast_label = co_await find_label(
      parts.env, fast, kFastLabel, {.may_format = parts.may_format, .number = 2});
  if (!fast_label) co_return fail(fast_label.error());
  const Result<SlowState> slow_found = slow_state(*slow_label, slow.geometry());
  if (!slow_found) co_return fail(slow_found.error());
  const Result<FastState> fast_found =
      fast_state(*fast_label, fast.geometry(), *slow_label, *slow_found);
  if (!fast_found) co_return fail(fast_found.error());
  if (fast.geometry().transfer_blocks < fast_found->line_blocks) {
    co_return fail(Errc::kUnsupported, "the fast drive cannot transfer a line at once");
  }
  const bool is_new = !*fast_label;
  FastCacheFound found{.slow = *slow_found, .fast = *fast_found};
  found.slow_label = *slow_label ? **slow_label : new_label(parts.env, slow);
  found.fast_label = is_new ? new_label(parts.env, fast) : **fast_label;
  found.fast.slow_id = found.slow_label.id;
  const FastCacheOptions options{.is_back = mode == "back",
                                 .dirty_target = parts.options.number("dirty"),
                                 .drains = parts.options.is_yes("drain")};
  auto drive =
      std::make_unique<FastCache>(parts.env, std::move(parts.below), options, std::move(found));
  const Result<void> begun = co_await drive->begin(is_new);
  if (begun) co_return std::move(drive);
  co_await drive->close();
  co_return fail(begun.error());
}

}  // namespace cairn::drive
