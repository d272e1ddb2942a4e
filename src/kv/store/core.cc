// SPDX-License-Identifier: Apache-2.0
#include "kv/store/core.h"

#include <algorithm>
#include <utility>

namespace cairn::kv::store {

namespace {

// Recovery reads so much of the key log, or as much as eight tables have.
constexpr uint64_t kCheckpointBytes = 64_MiB;

uint64_t buckets_between_checkpoints(const Layout& layout, uint64_t wanted) {
  const uint64_t bytes = std::max(kCheckpointBytes, 8 * kEntryBytes * layout.segments);
  const uint64_t buckets = wanted != 0 ? wanted : bytes / layout.block_bytes;
  return std::clamp<uint64_t>(buckets, 1, layout.key_buckets / 4);
}

}  // namespace

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
