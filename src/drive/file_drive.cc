// SPDX-License-Identifier: Apache-2.0
#include "drive/file_drive.h"
#include "drive/scratch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "drive/scatter.h"

namespace cairn::drive {

namespace {}  // namespace

FileDrive::FileDrive(env::Env& env, std::unique_ptr<env::Disk> disk, uint32_t block_size,
                     SharedRanges& ranges, const Incarnation& incarnation)
    : env_(env), disk_(std::move(disk)), incarnation_(incarnation), ranges_(ranges) {
  geometry_ = {.blocks = disk_->size() / block_size,
               .block_size = block_size,
               .transfer_blocks = static_cast<uint32_t>(1_MiB / block_size),
               .volatile_cache = true};
}

void FileDrive::start(DriveOp& op) { gate_.spawn(serve(op)); }

task::Task<void> FileDrive::serve(DriveOp& op) {
  while (resizing_) {
    Result<void> waited = co_await resized_.wait(op.token());
    if (!waited) co_return op.complete(waited);
  }
  ++running_;
  Result<void> result = co_await run(op);
  --running_;
  if (running_ == 0) idle_.set();
  op.complete(result);
}

task::Task<Result<void>> FileDrive::run(DriveOp& op) {
  using Kind = Request::Kind;
  const Request& request = op.request;
  if (request.kind == Kind::kCompareAndWrite) co_return co_await compare_and_write(op);
  Ranges::Hold hold(ranges_.on(env_.core()), Ranges::Mode::kShared, request.lba.value(),
                    request.blocks, op.token());
  if (request.writes()) {
    Result<void> held = co_await hold;
    if (!held) co_return held;
  }
  switch (request.kind) {
    case Kind::kRead:
    case Kind::kWrite:
      co_return co_await transfer(op, op.data());
    case Kind::kCompare:
      co_return co_await compare(op);
    case Kind::kCompareAndWrite:
      break;
    case Kind::kFlush:
      co_return co_await flush(op);
    case Kind::kDiscard:
      co_return co_await disk_->discard(offset(op), length(op), op.token());
    case Kind::kWriteZeroes:
      co_return co_await zero(op);
  }
  co_return fail(Errc::kInvalid, "drive request");
}

bool FileDrive::is_aligned_for_disk(std::span<const MutableBytes> pieces) const {
  for (MutableBytes piece : pieces) {
    const auto address = reinterpret_cast<uintptr_t>(piece.data());
    if (!is_aligned(address | piece.size(), disk_->block_size())) return false;
  }
  return true;
}

task::Task<Result<void>> FileDrive::transfer(DriveOp& op, std::span<const MutableBytes> pieces) {
  const bool reading = op.request.kind == Request::Kind::kRead;
  const env::Disk::WriteOptions options{.durable = op.request.durable};
  if (is_aligned_for_disk(pieces)) {
    if (reading) co_return co_await disk_->read(offset(op), pieces, op.token());
    co_return co_await disk_->write(offset(op), as_const(pieces), options, op.token());
  }
  Result<Scratch> bounce = Scratch::make(env_, length(op));
  if (!bounce) co_return fail(bounce.error());
  if (reading) {
    Result<void> done = co_await disk_->read(offset(op), bounce->bytes(), op.token());
    if (done) scatter(bounce->bytes(), pieces, 0);
    co_return done;
  }
  gather(pieces, 0, bounce->bytes());
  co_return co_await disk_->write(offset(op), bounce->bytes(), options, op.token());
}

task::Task<Result<void>> FileDrive::compare(DriveOp& op) {
  Result<Scratch> stored = Scratch::make(env_, length(op));
  if (!stored) co_return fail(stored.error());
  Result<void> done = co_await disk_->read(offset(op), stored->bytes(), op.token());
  if (!done) co_return done;
  if (!holds(op.data(), 0, stored->bytes())) co_return fail(Errc::kMismatch, "compare");
  co_return done;
}

// Alone on every core, so that no write of another core comes in between either.
task::Task<Result<void>> FileDrive::compare_and_write(DriveOp& op) {
  SharedRanges::Alone alone(ranges_, op.request.lba.value(), op.request.blocks);
  co_await alone.enter(env_);
  Result<void> done = co_await compare(op);
  if (done) done = co_await transfer(op, op.second());
  co_await alone.leave(env_);
  co_return done;
}

// Zeroes that need not keep their space are a hole, which a disk reads as zeroes too.
task::Task<Result<void>> FileDrive::zero(DriveOp& op) {
  if (op.request.keep_space) {
    const env::Disk::WriteOptions options{.durable = op.request.durable};
    co_return co_await disk_->write_zeroes(offset(op), length(op), options, op.token());
  }
  Result<void> done = co_await disk_->discard(offset(op), length(op), op.token());
  if (!done || !op.request.durable) co_return done;
  done = co_await disk_->flush(op.token());
  losses_.flushed(done, op.token());
  co_return done;
}

// A disk says once that it lost something, whoever asked: all who flush must hear of it.
task::Task<Result<void>> FileDrive::flush(DriveOp& op) {
  const uint64_t told = losses_.told();
  const Result<void> done = co_await disk_->flush(op.token());
  losses_.flushed(done, op.token());
  if (op.token().requested()) co_return done;
  co_return losses_.tell(told, done);
}

Extent FileDrive::extent_at(Lba lba, uint64_t max) const {
  const uint64_t size = geometry_.block_size;
  const uint64_t end = (lba.value() + max) * size;
  const env::Disk::Extent data = disk_->next_data(lba.value() * size);
  const uint64_t begin = data.length == 0 ? end : std::min(data.offset, end);
  if (const uint64_t hole = begin / size - lba.value(); hole > 0) {
    return {.blocks = hole, .is_hole = true};
  }
  const uint64_t full = align_up(std::min(data.offset + data.length, end), size);
  return {.blocks = full / size - lba.value()};
}

task::Task<Result<void>> FileDrive::resize(uint64_t blocks) {
  if (resizing_) co_return fail(Errc::kLimit, "the drive is being resized");
  resizing_ = true;
  resized_.reset();
  while (running_ > 0) {
    idle_.reset();
    Result<void> emptied = co_await idle_.wait();
    CHECK(emptied.has_value());
  }
  // The size is durable before anybody writes down that the drive has it.
  Result<void> resized = co_await disk_->resize(blocks * geometry_.block_size);
  if (resized) {
    resized = co_await disk_->flush();
    losses_.flushed(resized);
    if (resized) {
      geometry_.blocks = blocks;
    } else {
      const Result<void> undone = co_await disk_->resize(geometry_.bytes());
      (void)undone;  // a file that is larger than its drive does no harm
    }
  }
  resizing_ = false;
  resized_.set();
  co_return resized;
}

task::Task<void> FileDrive::close() { co_await gate_.close(); }

}  // namespace cairn::drive
