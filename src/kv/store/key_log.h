// SPDX-License-Identifier: Apache-2.0
// KeyLog: segments, appended in batches; a batch that is durable is a commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "kv/store/block_io.h"
#include "kv/store/bucket_format.h"
#include "kv/store/durability.h"
#include "kv/store/layout.h"
#include "kv/store/log_space.h"
#include "kv/store/segment_table.h"
#include "task/gate.h"
#include "task/operation.h"
#include "task/task.h"

namespace cairn::kv::store {

// What a store counts; a checkpoint keeps it, and each write of a segment says how it changes.
struct Totals {
  uint64_t keys = 0;
  uint64_t live_units = 0;  // of the value log
};

// A segment with what it is to hold.
struct SegmentWrite {
  uint32_t segment = 0;
  std::vector<Item> items;
  int16_t key_delta = 0;
  int32_t unit_delta = 0;
};

// One batch is under way at a time, and is durable (if the mode says so) before the next begins: so
// each batch on the drive has all before it. Commits that wait meanwhile are the next batch.
class KeyLog {
 public:
  struct Parts {
    env::Env& env;
    BlockIo& io;
    Syncer& syncer;
    const Layout& layout;
    const StoreId& id;
    LogSpace& space;
    const LogSpace& values;
    SegmentTable& table;
    Totals& totals;
    uint16_t epoch = 0;
  };
  // kLimit: no memory. All before the tail is durable.
  static Result<std::unique_ptr<KeyLog>> open(const Parts& parts);
  KeyLog(const Parts& parts, drive::Scratch stage)
      : parts_(parts), stage_(std::move(stage)), stable_(parts.space.tail()) {}

  // How the values that a commit refers to were written.
  struct Values {
    uint64_t losses = 0;  // of the Syncer before the first of them
    bool are_durable = false;
  };
  class Commit : public task::Operation<void>, public ListHook<KeyLog> {
   public:
    Commit(KeyLog& log, std::span<const SegmentWrite> writes, const Values& values)
        : Operation(task::CancelToken()),
          log_(log),
          writes_(writes),
          values_(values),
          buckets_(log.buckets_of_all(writes)) {}

   private:
    friend class KeyLog;
    void start() override;
    void cancel() override {}  // it has no token: it ends with its batch
    KeyLog& log_;
    const std::span<const SegmentWrite> writes_;
    const Values values_;
    const uint64_t buckets_;
  };
  // All of these segments, or none, also over a crash; then the table has them. Their buckets were
  // reserved, and are used up on success. kIo: also when values may have been lost; else errors of
  // the drive. After an error that was no kIo of values either may be found after a crash.
  Commit commit(std::span<const SegmentWrite> writes, const Values& values) {
    return {*this, writes, values};
  }
  uint64_t buckets_of_all(std::span<const SegmentWrite> writes) const;

  // What the table says of a segment, as it is on the drive: empty for one without keys. kCorrupt:
  // a bucket is damaged, or has been overwritten meanwhile.
  struct Chain {
    drive::Scratch memory;
    Bytes buckets;
  };
  task::Task<Result<Chain>> read(uint32_t segment, SegmentTable::Chain chain) const;

  // All that was committed until now is durable. Errors of the drive; then, in modes in which
  // others do not wait for it, no more is committed: what the log has after a gap would be lost.
  task::Task<Result<void>> sync();
  // All before is known to be durable.
  uint64_t stable() const { return stable_; }
  // No more commits, and why.
  void stop(const Error& error) { stopped_ = error; }

  // Once, when nothing is under way.
  task::Task<void> close() { return gate_.close(); }

 private:
  struct Batch {
    List<Commit, KeyLog> commits;
    uint64_t position = 0;
    uint64_t buckets = 0;
    uint64_t skipped = 0;     // before it, up to the end of a lap
    bool is_durable = false;  // every write of it is
    uint64_t losses = 0;
  };
  task::Task<void> pump();
  void fill(Batch& batch);
  task::Task<Result<void>> run(Batch& batch);
  task::Task<Result<void>> end_lap(Batch& batch);
  void encode(Batch& batch, MutableBytes to);
  size_t encode_segment(const SegmentWrite& write, BucketHeader& header, uint64_t position,
                        MutableBytes to) const;
  void publish(const Batch& batch);
  void finish(Batch& batch, const Result<void>& done);
  uint16_t unstable_at(uint64_t position) const;

  const Parts parts_;
  drive::Scratch stage_;
  uint64_t stable_;
  std::optional<Error> stopped_;
  List<Commit, KeyLog> queue_;
  bool is_writing_ = false;
  task::Gate gate_;
};

}  // namespace cairn::kv::store
