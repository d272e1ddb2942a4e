// SPDX-License-Identifier: Apache-2.0
// ValueLog: keys with their values, appended one after the other without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "drive/scratch.h"
#include "env/env.h"
#include "kv/store/block_io.h"
#include "kv/store/layout.h"
#include "kv/store/log_space.h"
#include "kv/store/value_format.h"
#include "task/gate.h"
#include "task/operation.h"
#include "task/task.h"

namespace cairn::kv::store {

// What was read of the log: bytes from a position on, unchecked, but not past the end of its lap.
struct ValueWindow {
  drive::Scratch memory;
  Bytes bytes;  // in it
};
// By one read of the drive.
task::Task<Result<ValueWindow>> read_values(env::Env& env, BlockIo& io, const Layout& layout,
                                            uint64_t position, size_t bytes);

// Records that wait while others are being written go out together, in one write. One that failed
// leaves nothing: its room is written again.
class ValueLog {
 public:
  struct Parts {
    env::Env& env;
    BlockIo& io;
    const Layout& layout;
    const StoreId& id;
    LogSpace& space;
  };
  // kLimit: no memory. Reads the block in which the tail lies.
  static task::Task<Result<std::unique_ptr<ValueLog>>> open(Parts parts);
  ValueLog(Parts parts, drive::Scratch stage, drive::Scratch tail_block)
      : parts_(parts), stage_(std::move(stage)), tail_block_(std::move(tail_block)) {}

  class Append : public task::Operation<uint64_t>, public ListHook<ValueLog> {
   public:
    Append(ValueLog& log, const RecordHeader& header, Bytes key, Bytes value, bool is_durable)
        : Operation(task::CancelToken()),
          log_(log),
          header_(header),
          key_(key),
          value_(value),
          is_durable_(is_durable) {}

   private:
    friend class ValueLog;
    void start() override;
    void cancel() override {}  // it has no token: it ends with its write
    ValueLog& log_;
    const RecordHeader header_;
    const Bytes key_;
    const Bytes value_;
    const bool is_durable_;
  };
  // The position of the record, once it is written, and durable if that was asked. Its units were
  // reserved; on success they are used up. Key and value are lent. Errors of the drive.
  Append append(const RecordHeader& header, Bytes key, Bytes value, bool is_durable) {
    return {*this, header, key, value, is_durable};
  }

  // One record as it was read.
  struct Stored {
    ValueWindow window;
    Record record;  // points into it
  };
  // The record at a position, by one read of so many bytes of it. kCorrupt: there is none, or it is
  // damaged; also where others have been written meanwhile.
  task::Task<Result<Stored>> read(uint64_t position, size_t bytes) const;
  task::Task<Result<ValueWindow>> read_raw(uint64_t position, size_t bytes) const {
    return read_values(parts_.env, parts_.io, parts_.layout, position, bytes);
  }

  // Once, when nothing is under way.
  task::Task<void> close() { return gate_.close(); }

 private:
  struct Batch {
    List<Append, ValueLog> appends;
    size_t used = 0;       // bytes of the stage
    uint64_t units = 0;    // of records
    uint64_t skipped = 0;  // units after them, up to the end of the lap
    bool is_durable = false;
  };
  task::Task<void> pump();
  void fill(Batch& batch);
  task::Task<Result<void>> write(const Batch& batch, uint64_t from);
  void finish(Batch& batch, const Result<void>& written);
  size_t tail_offset() const {
    return parts_.space.place_of(parts_.space.tail()) * kUnitBytes % parts_.layout.block_bytes;
  }

  const Parts parts_;
  drive::Scratch stage_;
  drive::Scratch tail_block_;  // the block in which the tail lies, as it is on the drive
  List<Append, ValueLog> queue_;
  bool is_writing_ = false;
  task::Gate gate_;
};

}  // namespace cairn::kv::store
