// SPDX-License-Identifier: Apache-2.0
#include "drive/replay.h"

#include <algorithm>

#include "base/buffer.h"
#include "base/bytes.h"
#include "drive/join.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"

namespace cairn::drive {

namespace {

// One replay in progress. Every request reads into, or writes from, the same memory: nobody looks.
class Replay {
 public:
  Replay(env::Env& env, Drive& drive, const ReplayOptions& options, task::CancelToken token)
      : env_(env), drive_(drive), options_(options), token_(token), slots_(options.depth) {}

  task::Task<Result<ReplayResult>> run(ReplaySource& source) {
    const Geometry& shape = drive_.geometry();
    step_ = std::min<uint64_t>(shape.transfer_blocks, env_.buffers().size_max() / shape.block_size);
    Result<Buffer> reads = env_.buffers().allocate(step_ * shape.block_size);
    if (!reads) co_return fail(reads.error());
    Result<Buffer> zeroes = env_.buffers().allocate(step_ * shape.block_size);
    if (!zeroes) co_return fail(zeroes.error());
    std::ranges::fill(zeroes->bytes(), std::byte{0});
    read_memory_ = reads->bytes();
    write_memory_ = zeroes->bytes();
    const Time start = env_.now();
    for (uint64_t i = 0; i < options_.requests; ++i) {
      const std::optional<trace::Record> record = source();
      if (!record) break;
      Time when = env_.now();
      if (options_.speed > 0) {
        when =
            start +
            Duration{static_cast<int64_t>(static_cast<double>(record->arrival) / options_.speed)};
        if (when > env_.now()) {
          const Result<void> slept = co_await task::sleep_until(env_, when, token_);
          if (!slept) break;
        }
      }
      if (slots_.available() == 0 && options_.speed > 0) ++result_.late;
      const Result<void> slot = co_await slots_.acquire(1, token_);
      if (!slot) break;
      gate_.spawn(serve(*record, options_.speed > 0 ? when : env_.now()));
    }
    co_await gate_.close();
    result_.took = env_.now() - start;
    co_return std::move(result_);
  }

 private:
  struct Blocks {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  Blocks blocks_of(const trace::Record& record) const {
    const Geometry& shape = drive_.geometry();
    const uint64_t end = (record.offset + record.bytes + shape.block_size - 1) / shape.block_size;
    Blocks blocks{.first = record.offset / shape.block_size};
    blocks.count = std::min(end - blocks.first, shape.blocks);
    blocks.first %= shape.blocks - blocks.count + 1;
    return blocks;
  }

  task::Task<void> serve(trace::Record record, Time when) {
    const Blocks blocks = blocks_of(record);
    Join join;
    for (uint64_t at = 0; at < blocks.count; at += step_) {
      join.add();
      const Blocks part{blocks.first + at, std::min(step_, blocks.count - at)};
      gate_.spawn(serve_part(record.write, part, join));
    }
    const Result<void> done = co_await join.all();
    slots_.release();
    if (!done) {
      ++result_.errors;
      if (!result_.first_error) result_.first_error = done.error();
      co_return;
    }
    ++(record.write ? result_.writes : result_.reads);
    result_.bytes += record.bytes;
    Histogram& latencies = record.write ? result_.write_ns : result_.read_ns;
    latencies.record(static_cast<uint64_t>((env_.now() - when).ns));
  }

  task::Task<void> serve_part(bool writes, Blocks part, Join& join) {
    const MutableBytes memory =
        (writes ? write_memory_ : read_memory_).first(part.count * drive_.geometry().block_size);
    const Request request{.kind = writes ? Request::Kind::kWrite : Request::Kind::kRead,
                          .lba = Lba(part.first),
                          .blocks = part.count};
    const Result<void> done = co_await drive_.submit(request, {&memory, 1}, {}, token_);
    join.finish(done);
  }

  env::Env& env_;
  Drive& drive_;
  const ReplayOptions options_;
  const task::CancelToken token_;
  task::Semaphore slots_;
  uint64_t step_ = 0;
  MutableBytes read_memory_;
  MutableBytes write_memory_;
  ReplayResult result_;
  task::Gate gate_;
};

}  // namespace

task::Task<Result<ReplayResult>> replay(env::Env& env, Drive& drive, ReplaySource& source,
                                        ReplayOptions options, task::CancelToken token) {
  Replay one(env, drive, options, token);
  Result<ReplayResult> result = co_await one.run(source);
  co_return result;
}

}  // namespace cairn::drive
