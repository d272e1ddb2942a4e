// SPDX-License-Identifier: Apache-2.0
#include "loadgen/drive_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "env/memory.h"
#include "loadgen/block_pattern.h"
#include "loadgen/drive_load.h"
#include "task/deadline.h"

namespace cairn::loadgen {

namespace {

struct Blocks {
  Lba first;
  uint64_t count = 0;
};

// Judges a block that was read; returns whether its contents were known.
using Judge = std::function<bool(Lba lba, Bytes block, VerifyResult& result)>;

// What writing and checking share: the drive, memory for each worker, and the end.
class VerifyRun {
 public:
  VerifyRun(env::Env& env, drive::Drive& drive, const DriveVerify& options, Blocks range,
            task::CancelToken token)
      : env_(env),
        drive_(drive),
        options_(options),
        range_(range),
        token_(token),
        request_max_(std::min<uint64_t>(
            {options.request_blocks_max, range.count, drive.geometry().transfer_blocks})) {}

  Result<void> prepare() {
    const drive::Geometry& geometry = drive_.geometry();
    const uint64_t first = range_.first.value();
    if (range_.count == 0 || first >= geometry.blocks || range_.count > geometry.blocks - first) {
      return fail(Errc::kInvalid, "the range is not within the drive");
    }
    const bool sound = options_.depth >= 1 && options_.depth <= kLoadDepthMax &&
                       request_max_ >= 1 && options_.write_share >= 0 && options_.write_share <= 1;
    if (!sound) return fail(Errc::kInvalid, "depth, request size or share of writes");
    Result<std::unique_ptr<env::Memory>> memory = env_.map_memory(options_.depth * request_bytes());
    if (!memory) return fail(memory.error());
    memory_ = std::move(*memory);
    return {};
  }

  uint64_t request_bytes() const { return request_max_ * drive_.geometry().block_size; }
  MutableBytes memory_of(uint32_t worker, uint64_t blocks) const {
    const uint64_t size = blocks * drive_.geometry().block_size;
    return memory_->bytes().subspan(worker * request_bytes(), size);
  }
  MutableBytes block_of(MutableBytes memory, uint64_t index) const {
    const uint32_t size = drive_.geometry().block_size;
    return memory.subspan(index * size, size);
  }
  bool goes_on() const { return result_.ok() && !token_.requested(); }

  // Reads and judges. The blocks are nobody else's meanwhile.
  task::Task<void> read(uint32_t worker, Blocks blocks, const Judge& judge) {
    const MutableBytes memory = memory_of(worker, blocks.count);
    const Result<void> done = co_await drive_.read(blocks.first, memory, token_);
    if (!done) co_return failed("reading", blocks.first, done.error());
    ++result_.reads;
    for (uint64_t i = 0; i < blocks.count; ++i) {
      const Lba lba(blocks.first.value() + i);
      if (judge(lba, block_of(memory, i), result_)) ++result_.blocks_checked;
    }
  }

  void failed(const char* verb, Lba lba, const Error& error) {
    const bool was_cancelled = token_.requested() && error == token_.error().code();
    if (was_cancelled || result_.error) return;
    result_.error = error;
    result_.failed = fmt::format("{} block {}", verb, lba.value());
  }

  // Every piece of the range for which `wanted` says so, once, in random order.
  task::Task<void> read_all(Rng& rng, const std::function<bool(Blocks)>& wanted,
                            const Judge& judge) {
    std::vector<Blocks> pieces;
    for (uint64_t at = 0; at < range_.count; at += request_max_) {
      const Blocks piece{.first = Lba(range_.first.value() + at),
                         .count = std::min(request_max_, range_.count - at)};
      if (wanted(piece)) pieces.push_back(piece);
    }
    for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[rng.below(i)]);
    size_t next = 0;
    std::vector<task::Task<void>> workers;
    for (uint32_t i = 0; i < options_.depth; ++i) {
      workers.push_back(read_pieces(i, pieces, next, judge));
    }
    for (task::Task<void>& worker : workers) co_await worker;
  }

  env::Env& env_;
  drive::Drive& drive_;
  const DriveVerify options_;
  const Blocks range_;
  task::CancelToken token_;
  const uint64_t request_max_;  // blocks
  std::unique_ptr<env::Memory> memory_;
  VerifyResult result_;

 private:
  task::Task<void> read_pieces(uint32_t worker, const std::vector<Blocks>& pieces, size_t& next,
                               const Judge& judge) {
    while (goes_on() && next < pieces.size()) co_await read(worker, pieces[next++], judge);
  }
};

// A block that must be one of the allowed generations.
bool judge_block(const BlockOracle& oracle, Allowed allowed, Lba lba, Bytes block,
                 VerifyResult& result) {
  if (allowed.low == 0) return false;  // what was there before may still be
  const std::optional<BlockStamp> stamp = read_stamp(block);
  const bool is_ours = stamp && stamp->seed == oracle.seed() && stamp->lba == lba;
  const bool is_allowed =
      is_ours && stamp->generation >= allowed.low && stamp->generation <= allowed.high;
  if (!is_allowed && !result.mismatch) {
    const BlockStamp expected{.seed = oracle.seed(), .lba = lba, .generation = allowed.high};
    result.mismatch =
        BlockMismatch{.lba = lba, .allowed = allowed, .found = describe_block(block, expected)};
  }
  return true;
}

// The phase in which blocks change.
class Churn : public VerifyRun {
 public:
  Churn(env::Env& env, drive::Drive& drive, const DriveVerify& options, BlockOracle& oracle,
        task::CancelToken token)
      : VerifyRun(env, drive, options, {oracle.first(), oracle.blocks()}, token),
        oracle_(oracle),
        rng_(oracle.seed()),
        judge_([&oracle](Lba lba, Bytes block, VerifyResult& result) {
          return judge_block(oracle, oracle.allowed(lba), lba, block, result);
        }) {}

  task::Task<VerifyResult> run() {
    end_ = env_.now() + options_.duration;
    task::CancelSource flushing(token_);
    task::Task<void> flusher = flush_now_and_then(flushing.token());
    std::vector<task::Task<void>> workers;
    for (uint32_t i = 0; i < options_.depth; ++i) workers.push_back(work(i));
    for (task::Task<void>& worker : workers) co_await worker;
    flushing.request();
    co_await flusher;
    if (goes_on()) co_await flush();
    const auto is_known = [this](Blocks piece) {
      for (uint64_t i = 0; i < piece.count; ++i) {
        if (oracle_.is_known(Lba(piece.first.value() + i))) return true;
      }
      return false;
    };
    if (goes_on()) co_await read_all(rng_, is_known, judge_);
    co_return std::move(result_);
  }

 private:
  bool has_time() const {
    if (!goes_on() || env_.now() >= end_) return false;
    return options_.requests_max == 0 || begun_ < options_.requests_max;
  }

  task::Task<void> work(uint32_t worker) {
    while (has_time()) {
      const Blocks blocks = draw();
      if (!oracle_.claim(blocks.first, blocks.count)) {
        // Others are at it: a small range is soon free again.
        const Result<void> slept = co_await task::sleep_for(env_, 10_us, token_);
        if (!slept) break;
        continue;
      }
      ++begun_;
      if (rng_.bernoulli(options_.write_share)) {
        co_await write(worker, blocks);
      } else {
        co_await read(worker, blocks, judge_);
      }
      oracle_.release(blocks.first, blocks.count);
    }
  }

  Blocks draw() {
    const uint64_t count = rng_.between(1, request_max_);
    return {.first = Lba(range_.first.value() + rng_.below(range_.count - count + 1)),
            .count = count};
  }

  task::Task<void> write(uint32_t worker, Blocks blocks) {
    const MutableBytes memory = memory_of(worker, blocks.count);
    for (uint64_t i = 0; i < blocks.count; ++i) {
      const Lba lba(blocks.first.value() + i);
      const uint32_t generation = oracle_.write_begins(lba);
      fill_block(block_of(memory, i),
                 {.seed = oracle_.seed(), .lba = lba, .generation = generation});
    }
    const drive::Request request{.kind = drive::Request::Kind::kWrite,
                                 .durable = options_.durable,
                                 .lba = blocks.first,
                                 .blocks = blocks.count};
    const Result<void> done = co_await drive_.submit(request, {&memory, 1}, {}, token_);
    if (!done) co_return failed("writing", blocks.first, done.error());
    ++result_.writes;
    result_.blocks_written += blocks.count;
    const bool durable = options_.durable || !drive_.geometry().volatile_cache;
    for (uint64_t i = 0; i < blocks.count; ++i) {
      oracle_.write_acknowledged(Lba(blocks.first.value() + i), durable);
    }
  }

  task::Task<void> flush_now_and_then(task::CancelToken token) {
    if (options_.durable || !drive_.geometry().volatile_cache) co_return;
    for (;;) {
      const Result<void> slept = co_await task::sleep_for(env_, options_.flush_every, token);
      if (!slept || !goes_on()) co_return;
      co_await flush();
    }
  }
  task::Task<void> flush() {
    const uint64_t flush = oracle_.flush_begins();
    const Result<void> done = co_await drive_.flush(token_);
    if (!done) co_return failed("flushing, after", range_.first, done.error());
    oracle_.flush_done(flush);
    ++result_.flushes;
  }

  BlockOracle& oracle_;
  Rng rng_;
  Judge judge_;
  Time end_;
  uint64_t begun_ = 0;
};

task::Task<Result<VerifyResult>> check_all(env::Env& env, drive::Drive& drive, DriveVerify options,
                                           StampRange range, Judge judge, task::CancelToken token) {
  VerifyRun run(env, drive, options, {range.first, range.blocks}, token);
  if (Result<void> prepared = run.prepare(); !prepared) co_return fail(prepared.error());
  Rng rng(range.seed);
  const auto all = [](Blocks) { return true; };
  co_await run.read_all(rng, all, judge);
  co_return std::move(run.result_);
}

}  // namespace

task::Task<Result<VerifyResult>> verify_drive(env::Env& env, drive::Drive& drive,
                                              DriveVerify options, BlockOracle& oracle,
                                              task::CancelToken token) {
  Churn churn(env, drive, options, oracle, token);
  if (Result<void> prepared = churn.prepare(); !prepared) co_return fail(prepared.error());
  VerifyResult result = co_await churn.run();
  co_return result;
}

task::Task<Result<VerifyResult>> check_drive(env::Env& env, drive::Drive& drive,
                                             DriveVerify options, const BlockOracle& oracle,
                                             task::CancelToken token) {
  const Judge judge = [&oracle](Lba lba, Bytes block, VerifyResult& result) {
    return judge_block(oracle, oracle.allowed_after_crash(lba), lba, block, result);
  };
  const StampRange range{.seed = oracle.seed(), .first = oracle.first(), .blocks = oracle.blocks()};
  Result<VerifyResult> result = co_await check_all(env, drive, options, range, judge, token);
  co_return result;
}

task::Task<Result<VerifyResult>> check_stamps(env::Env& env, drive::Drive& drive,
                                              DriveVerify options, StampRange range,
                                              task::CancelToken token) {
  const Judge judge = [range](Lba lba, Bytes block, VerifyResult& result) {
    if (!bears_seed(block, range.seed)) return false;
    const std::optional<BlockStamp> stamp = read_stamp(block);
    if (!(stamp && stamp->lba == lba) && !result.mismatch) {
      const BlockStamp expected{.seed = range.seed, .lba = lba};
      result.mismatch = BlockMismatch{.lba = lba,
                                      .allowed = {.low = 1, .high = UINT32_MAX},
                                      .found = describe_block(block, expected)};
    }
    return true;
  };
  Result<VerifyResult> result = co_await check_all(env, drive, options, range, judge, token);
  co_return result;
}

}  // namespace cairn::loadgen
