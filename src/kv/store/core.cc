// SPDX-License-Identifier: Apache-2.0
#include "kv/store/core.h"

#include <algorithm>
#include <utility>

namespace cairn::kv::store {

namespace {

constexpr uint64_t kRecordUnitsMax = (kRecordBytesMax + kUnitBytes - 1) / kUnitBytes;

// Recovery reads so much of the key log, or as much as eight tables have.
constexpr uint64_t kCheckpointBytes = 64_MiB;

uint64_t buckets_between_checkpoints(const Layout& layout, uint64_t wanted) {
  const uint64_t bytes = std::max(kCheckpointBytes, 8 * kEntryBytes * layout.segments);
  const uint64_t buckets = wanted != 0 ? wanted : bytes / layout.block_bytes;
  return std::clamp<uint64_t>(buckets, 1, layout.key_buckets / 4);
}

}  // namespace

uint64_t commit_buckets_max(const Layout& layout) {
  return std::min<uint64_t>(layout.key_buckets / 16, kBatchBucketsMax);
}

LogSpace::Limits key_limits(const Layout& layout) {
  const uint64_t sixteenth = layout.key_buckets / 16;
  return {.size = layout.key_buckets,
          .margin = sixteenth,
          .movers = sixteenth / 2,
          .compaction = sixteenth,
          .low = 3 * sixteenth};
}

uint64_t live_buckets_max(const Layout& layout) { return layout.key_buckets / 4 * 3; }

uint64_t value_window_units(const Layout& layout) {
  return std::clamp<uint64_t>(layout.value_units / 64, kRecordUnitsMax, 256_KiB / kUnitBytes);
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
  return layout.value_units - value_limits(layout).low - layout.value_units / 32;
}

Core::Core(env::Env& its_env, std::unique_ptr<drive::Drive> its_drive,
           const StoreOptions& its_options, Recovered recovered)
    : env(its_env),
      drive(std::move(its_drive)),
      options(its_options),
      label(std::move(recovered.label)),
      superblock(recovered.superblock),
      io(env, *drive, options.io_timeout),
      syncer(env, io, drive->geometry().volatile_cache, options.durability),
      table(std::move(recovered.table)),
      totals(recovered.totals),
      next_version(recovered.next_version),
      key_space(key_limits(superblock.layout), recovered.keys),
      value_space(value_limits(superblock.layout), recovered.values),
      checkpoint_every(
          buckets_between_checkpoints(superblock.layout, its_options.checkpoint_every)) {
  key_space.pin(superblock.checkpoint.key_from);
}

}  // namespace cairn::kv::store
