// SPDX-License-Identifier: Apache-2.0
// LogScan: where the key log ends, found by reading it from a checkpoint on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "kv/store/block_io.h"
#include "kv/store/bucket_format.h"
#include "kv/store/layout.h"
#include "kv/store/table_format.h"
#include "task/task.h"

namespace cairn::kv::store {

class LogScan {
 public:
  LogScan(env::Env& env, BlockIo& io, const Layout& layout, const StoreId& id,
          const Superblock& superblock)
      : env_(env),
        io_(io),
        layout_(layout),
        id_(id),
        epoch_(static_cast<uint16_t>(superblock.epoch)),
        known_end_(superblock.checkpoint.key_stable),
        end_(superblock.checkpoint.key_from),
        limit_(superblock.checkpoint.key_from + layout.key_buckets),
        stable_(superblock.checkpoint.key_stable) {}

  struct Batch {
    uint64_t position = 0;
    uint64_t buckets = 0;
    uint64_t value_head = 0;
  };
  // kCorrupt: after the end there is a batch that was written when what is missing was durable.
  task::Task<Result<void>> run();

  // In their order; all of each is there.
  const std::vector<Batch>& batches() const { return batches_; }
  uint64_t end() const { return end_; }
  // Batches before this were durable, and so were the values that they point to.
  uint64_t stable() const { return stable_; }
  // Its buckets; lent until the next call.
  task::Task<Result<Bytes>> read(const Batch& batch);

 private:
  // So many buckets from a position on, in one lap; lent until the next call.
  task::Task<Result<Bytes>> load(uint64_t position, uint64_t count);
  task::Task<Result<void>> fill(uint64_t position, uint64_t count);
  task::Task<Result<bool>> take_batch();
  bool is_batch(Bytes buckets, const BucketHeader& first) const;
  task::Task<Result<void>> look_beyond();
  // Behind the end that an opening found, what earlier ones have left is no part of the log.
  bool is_stale(uint64_t position, uint16_t epoch) const {
    return position >= known_end_ && epoch != epoch_;
  }

  env::Env& env_;
  BlockIo& io_;
  const Layout& layout_;
  const StoreId& id_;
  const uint16_t epoch_;
  const uint64_t known_end_;
  uint64_t end_;
  const uint64_t limit_;
  uint64_t stable_;
  std::vector<Batch> batches_;
  drive::Scratch memory_;
  uint64_t loaded_ = 0;  // the position of what memory_ has
};

}  // namespace cairn::kv::store
