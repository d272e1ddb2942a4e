// SPDX-License-Identifier: Apache-2.0
#include "service/common/space.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace cairn::drive {

Space::Space(uint64_t units)
    : units_(units), free_(units), taken_((units + 63) / 64), used_((units + 63) / 64) {}

std::optional<uint64_t> Space::find(uint64_t from, uint64_t to, uint64_t count) const {
  uint64_t first = from;
  uint64_t run = 0;
  for (uint64_t unit = from; unit < units_ && first < to;) {
    if (run == 0 && unit % 64 == 0 && taken_[unit / 64] == UINT64_MAX) {
      unit += 64;
      first = unit;
      continue;
    }
    if (bit(taken_, unit)) {
      run = 0;
      first = unit + 1;
    } else if (++run == count) {
      return first;
    }
    ++unit;
  }
  return std::nullopt;
}

std::optional<uint64_t> Space::take(uint64_t count) {
  if (count == 0 || count > free_) return std::nullopt;
  std::optional<uint64_t> first = find(next_, units_, count);
  if (!first) first = find(0, next_, count);
  if (!first) return std::nullopt;
  for (uint64_t unit = *first; unit < *first + count; ++unit) {
    set(taken_, unit);
    set(used_, unit);
  }
  free_ -= count;
  next_ = (*first + count) % units_;
  return first;
}

Space::Run Space::free_run(uint64_t from, uint64_t max) const {
  uint64_t first = from;
  while (first < units_ && bit(taken_, first)) {
    const bool is_full_word = first % 64 == 0 && taken_[first / 64] == UINT64_MAX;
    first += is_full_word ? 64 : 1;
  }
  if (first >= units_) return {.first = units_};
  const uint64_t end = first + std::min(max, units_ - first);
  uint64_t last = first;
  while (last < end && !bit(taken_, last)) ++last;
  return {.first = first, .count = last - first};
}

Result<void> Space::claim(uint64_t unit) {
  if (unit >= units_ || bit(taken_, unit)) {
    return fail(Errc::kCorrupt, "two owners of a unit, or one beyond the end; unit",
                static_cast<int32_t>(unit));
  }
  set(taken_, unit);
  set(used_, unit);
  --free_;
  return {};
}

Result<void> Space::give(uint64_t unit) {
  if (!is_used(unit)) return fail(Errc::kInvalid, "a unit that is not in use is given back");
  clear(taken_, unit);
  clear(used_, unit);
  ++free_;
  return {};
}

Result<void> Space::give_after(uint64_t unit, uint64_t record) {
  if (!is_used(unit)) return fail(Errc::kInvalid, "a unit that is not in use is given back");
  CHECK(given_.empty() || given_.back().record <= record, "records are given in their order");
  clear(used_, unit);
  ++on_their_way_;
  given_.push_back({.unit = unit, .record = record});
  return {};
}

std::optional<uint64_t> Space::come_back(uint64_t durable) {
  if (given_.empty() || given_.front().record > durable) return std::nullopt;
  const uint64_t unit = given_.front().unit;
  given_.pop_front();
  --on_their_way_;
  set(used_, unit);
  return unit;
}

}  // namespace cairn::drive
