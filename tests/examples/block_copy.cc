// SPDX-License-Identifier: Apache-2.0
#include "examples/block_copy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "task/deadline.h"
#include "task/when_all.h"

namespace cairn::examples {

using env::Disk;
using env::Env;
using task::CancelSource;
using task::CancelToken;
using task::Task;

namespace {

// What the workers of one job share.
struct Job {
  Job(Env& its_env, Disk& source, Disk& target, const BlockCopyOptions& its_options,
      CancelToken parent)
      : env(its_env), from(source), to(target), options(its_options), stop(parent) {}

  Env& env;
  Disk& from;
  Disk& to;
  const BlockCopyOptions options;
  CancelSource stop;        // requested by the first that fails, and from outside
  uint64_t next = 0;        // where the next piece begins
  Result<void> first = {};  // the first error

  struct Piece {
    uint64_t offset = 0;
    size_t size = 0;  // 0: none is left
  };
  Piece take() {
    if (stop.requested()) return {};
    const uint64_t offset = next;
    const size_t size = std::min<uint64_t>(options.piece_size, from.size() - offset);
    next += size;
    return {offset, size};
  }
  void fail_with(const Error& error) {
    if (first) first = fail(error);
    stop.request();
  }
};

Result<void> check(Env& env, const Disk& from, const Disk& to, const BlockCopyOptions& options) {
  if (to.size() < from.size()) return fail(Errc::kInvalid, "the target of a copy is too small");
  if (options.piece_size == 0 || options.piece_size > env.buffers().size_max() ||
      !is_aligned(options.piece_size, from.block_size()) ||
      !is_aligned(options.piece_size, to.block_size()) ||
      !is_aligned(from.size(), to.block_size())) {
    return fail(Errc::kInvalid, "piece size of a copy");
  }
  if (options.in_flight_max == 0 || options.attempts_max == 0) {
    return fail(Errc::kInvalid, "limits of a copy");
  }
  return {};
}

// Whether to try again after an attempt that ended with `result`; waits a little if so.
Task<bool> should_retry(Job& job, uint32_t attempt, const Result<void>& result) {
  if (result || result.error() != Errc::kIo || attempt >= job.options.attempts_max) {
    co_return false;
  }
  const Result<void> slept =
      co_await task::sleep_for(job.env, job.options.retry_delay, job.stop.token());
  co_return slept.has_value();
}

Task<Result<void>> read_piece(Job& job, Disk& disk, uint64_t offset, MutableBytes into) {
  for (uint32_t attempt = 1;; ++attempt) {
    const Result<void> read = co_await disk.read(offset, into, job.stop.token());
    const bool again = co_await should_retry(job, attempt, read);
    if (!again) co_return read;
  }
}

Task<Result<void>> write_piece(Job& job, uint64_t offset, Bytes from) {
  for (uint32_t attempt = 1;; ++attempt) {
    const Result<void> written =
        co_await job.to.write(offset, from, Disk::WriteOptions{}, job.stop.token());
    const bool again = co_await should_retry(job, attempt, written);
    if (!again) co_return written;
  }
}

// Copies piece after piece until none is left or somebody fails.
Task<void> copy_pieces(Job& job) {
  const Result<Buffer> buffer = job.env.buffers().allocate(job.options.piece_size);
  if (!buffer) co_return job.fail_with(buffer.error());
  while (true) {
    const Job::Piece piece = job.take();
    if (piece.size == 0) co_return;
    const MutableBytes bytes = buffer->first(piece.size);
    Result<void> moved = co_await read_piece(job, job.from, piece.offset, bytes);
    if (moved) moved = co_await write_piece(job, piece.offset, bytes);
    if (!moved) co_return job.fail_with(moved.error());
  }
}

Task<void> compare_pieces(Job& job, bool& same) {
  const Result<Buffer> one = job.env.buffers().allocate(job.options.piece_size);
  const Result<Buffer> two = job.env.buffers().allocate(job.options.piece_size);
  if (!one) co_return job.fail_with(one.error());
  if (!two) co_return job.fail_with(two.error());
  while (same) {
    const Job::Piece piece = job.take();
    if (piece.size == 0) co_return;
    Result<void> read = co_await read_piece(job, job.from, piece.offset, one->first(piece.size));
    if (read) read = co_await read_piece(job, job.to, piece.offset, two->first(piece.size));
    if (!read) co_return job.fail_with(read.error());
    if (!std::ranges::equal(one->first(piece.size), two->first(piece.size))) same = false;
  }
}

}  // namespace

Task<Result<uint64_t>> copy_blocks(Env& env, Disk& from, Disk& to, BlockCopyOptions options,
                                   CancelToken stop) {
  if (Result<void> checked = check(env, from, to, options); !checked) {
    co_return fail(checked.error());
  }
  Job job(env, from, to, options, stop);
  std::vector<Task<void>> workers;
  for (uint32_t i = 0; i < options.in_flight_max; ++i) workers.push_back(copy_pieces(job));
  co_await task::when_all(std::move(workers));
  if (!job.first) co_return fail(job.first.error());
  if (stop.requested()) co_return fail(stop.error());
  // Until here any crash may undo any of it.
  const Result<void> flushed = co_await to.flush(stop);
  if (!flushed) co_return fail(flushed.error());
  co_return from.size();
}

Task<Result<bool>> same_blocks(Env& env, Disk& from, Disk& to, BlockCopyOptions options,
                               CancelToken stop) {
  if (Result<void> checked = check(env, from, to, options); !checked) {
    co_return fail(checked.error());
  }
  Job job(env, from, to, options, stop);
  bool same = true;
  std::vector<Task<void>> workers;
  for (uint32_t i = 0; i < options.in_flight_max; ++i) {
    workers.push_back(compare_pieces(job, same));
  }
  co_await task::when_all(std::move(workers));
  if (!job.first) co_return fail(job.first.error());
  if (stop.requested()) co_return fail(stop.error());
  co_return same;
}

}  // namespace cairn::examples
