// SPDX-License-Identifier: Apache-2.0
#include "kv/store/limits.h"

#include <algorithm>

#include "base/units.h"
#include "kv/store/bucket_format.h"
#include "kv/store/value_format.h"

namespace cairn::kv::store {

namespace {

constexpr uint64_t kRecordUnitsMax = (kRecordBytesMax + kUnitBytes - 1) / kUnitBytes;
constexpr uint64_t kWindowBytes = 256_KiB;
// A small log grants one commit this much, or a sixteenth of itself.
constexpr uint64_t kSmallCommitBytes = 1_MiB;
constexpr uint64_t kMoversBuckets = 1024;  // at once, beyond one chain

// What is dead when a log is as full as it may be, and no reserve. Compaction writes what lives for
// what it frees: with one part in ten of the key log dead, about nine times as much as is changed.
constexpr uint64_t kKeySlack = 10;
constexpr uint64_t kValueSlack = 40;

}  // namespace

uint64_t commit_buckets_max(const Layout& layout) {
  const uint64_t small = std::min(layout.key_buckets / 16, kSmallCommitBytes / layout.block_bytes);
  return std::clamp<uint64_t>(layout.key_buckets / 64, small, kBatchBucketsMax);
}

uint64_t chain_buckets_max(const Layout& layout) {
  return std::clamp<uint64_t>(commit_buckets_max(layout) / 4, 1, kChainMax);
}

uint64_t key_window_buckets(const Layout& layout) {
  return std::clamp<uint64_t>(layout.key_buckets / 64, 4, kWindowBytes / layout.block_bytes + 4);
}

// A step of compaction, and what a write of anybody loses at the end of a lap.
LogSpace::Limits key_limits(const Layout& layout) {
  const uint64_t chain = chain_buckets_max(layout);
  const uint64_t window = key_window_buckets(layout);
  const uint64_t step = window + chain;
  LogSpace::Limits limits{.size = layout.key_buckets};
  limits.margin = std::max(commit_buckets_max(layout), step);
  limits.compaction = limits.margin + step;
  limits.movers = chain + std::min(layout.key_buckets / 64, kMoversBuckets);
  limits.low = limits.margin + limits.compaction + limits.movers + 4 * window;
  return limits;
}

uint64_t live_buckets_max(const Layout& layout) {
  const LogSpace::Limits limits = key_limits(layout);
  const uint64_t reserved = limits.margin + limits.compaction + limits.movers;
  return layout.key_buckets - reserved - layout.key_buckets / kKeySlack;
}

uint64_t value_window_units(const Layout& layout) {
  return std::clamp<uint64_t>(layout.value_units / 64, kRecordUnitsMax, kWindowBytes / kUnitBytes);
}

LogSpace::Limits value_limits(const Layout& layout) {
  const uint64_t window = value_window_units(layout);
  return {.size = layout.value_units,
          .margin = kRecordUnitsMax,
          .movers = 0,
          .compaction = 2 * window,
          .low = kRecordUnitsMax + 4 * window};
}

uint64_t live_units_max(const Layout& layout) {
  return layout.value_units - value_limits(layout).low - layout.value_units / kValueSlack;
}

}  // namespace cairn::kv::store
