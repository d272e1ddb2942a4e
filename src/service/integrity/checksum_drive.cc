// SPDX-License-Identifier: Apache-2.0
// How checksum serves requests.
#include "service/integrity/checksum_drive.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "drive/stable_memory.h"

namespace cairn::drive {

namespace {

constexpr size_t kPagesMin = 16;

uint32_t crc_of(const auto& value, uint32_t so_far) {
  return crc32c(Bytes(reinterpret_cast<const std::byte*>(&value), sizeof value), so_far);
}

}  // namespace

ChecksumDrive::ChecksumDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> drives,
                             ChecksumFound found, const ChecksumOptions& options)
    : ServiceDrive(std::move(drives)),
      env_(env),
      label_(std::move(found.label)),
      claim_(env, below(), label_),
      shape_(found.shape),
      is_new_(found.is_new),
      seed_(crc_of(shape_.id, 0)),
      table_(env, below(), gate(), shape_,
             std::max<size_t>(options.cache / shape_.block_size, kPagesMin)),
      intent_(*this, found.marked),
      unsettled_(found.marked),
      scratch_(shape_.block_size),
      scrub_rate_(options.rate, std::max<uint64_t>(options.rate / 10, 1), env.now()),
      closing_(env.stop_token()) {
  geometry_ = below().geometry();
  geometry_.blocks = shape_.data_blocks;
  geometry_.atomic_blocks =
      static_cast<uint32_t>(std::gcd(shape_.data_offset, uint64_t{geometry_.atomic_blocks}));
  const uint64_t max = env.buffers().size_max() / shape_.block_size;
  geometry_.transfer_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(geometry_.transfer_blocks, max));
  geometry_.atomic_blocks = std::min(geometry_.atomic_blocks, geometry_.transfer_blocks);
  geometry_.copies = 1;
}

// 0 stands for a block of zeroes, so no other block has it.
uint32_t ChecksumDrive::entry_of(uint64_t block, Bytes bytes) const {
  return std::max<uint32_t>(crc32c(bytes, crc_of(block, seed_)), 1);
}
bool ChecksumDrive::is_right(uint64_t block, Bytes bytes) {
  const uint32_t entry = table_.entry(block);
  return entry == 0 ? is_zero(bytes) : entry_of(block, bytes) == entry;
}

task::Task<Result<void>> ChecksumDrive::run(DriveOp& op) {
  if (op.request.kind == Request::Kind::kFlush) co_return co_await flush_for_user(op.token());
  // Sums are of the very bytes that go below, or came from there.
  if (has_unstable_memory(op.request) && op.request.kind != Request::Kind::kCompare) {
    co_return co_await run_on_copy(env_, *this, op);
  }
  if (op.request.writes()) co_return co_await change(op);
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, op.request.lba.value(), op.request.blocks,
                    op.token());
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  if (op.request.kind == Request::Kind::kCompare) co_return co_await compare(op);
  co_return co_await read_checked(op.request, op.data(), op.token());
}

task::Task<Result<void>> ChecksumDrive::flush(task::CancelToken token) {
  Result<void> written = co_await claim_.check(token);
  if (written) written = co_await table_.write_changes();
  if (!written) co_return written;
  notice_losses();
  const Result<void> flushed = co_await below().flush(token);
  if (!flushed && !token.requested()) lose();
  co_return flushed;
}

// The drive flushes by itself too: what was lost by then is told to the next who asks.
task::Task<Result<void>> ChecksumDrive::flush_for_user(task::CancelToken token) {
  const uint64_t told = losses_.told();
  const Result<void> done = co_await flush(token);
  if (token.requested()) co_return done;
  co_return losses_.tell(told, done);
}

void ChecksumDrive::lose() {
  losses_.add();
  table_.lose();
  const RegionSet& marks = intent_.marks();
  for (size_t region = marks.next(0); region < marks.size(); region = marks.next(region + 1)) {
    unsettle({region, 1});
  }
}

void ChecksumDrive::notice_losses() {
  if (!watch_.has_changed(below())) return;
  watch_.look(below());
  lose();
}

task::Task<Result<void>> ChecksumDrive::read_checked(Request request, Memory memory,
                                                     task::CancelToken token) {
  const Span blocks{request.lba.value(), request.blocks};
  request.lba = Lba(shape_.data_offset + blocks.first);
  request.copy = 0;
  Result<void> done;
  if (!table_.try_pin(blocks.first, blocks.count)) {
    done = co_await table_.pin(blocks.first, blocks.count, token);
  }
  if (!done) co_return done;
  done = co_await below().submit(request, memory, {}, token);
  std::vector<uint64_t> wrong;
  if (done) {
    change_blocks(memory, scratch_, [&](size_t index, MutableBytes bytes) {
      if (!is_right(blocks.first + index, bytes)) wrong.push_back(index);
    });
  }
  for (const uint64_t index : wrong) {
    done = co_await mend(blocks.first + index, memory, index * shape_.block_size, token);
    if (!done) break;
  }
  table_.unpin(blocks.first, blocks.count);
  co_return done;
}

// A block that does not match: from a copy that does, or as it is where that may be. The caller has
// its page pinned.
task::Task<Result<void>> ChecksumDrive::mend(uint64_t block, Memory memory, size_t offset,
                                             task::CancelToken token) {
  if (below().geometry().copies > 1) {
    Result<Scratch> buffer = Scratch::make(env_, shape_.block_size);
    if (!buffer) co_return fail(buffer.error());
    bool all_right = false;
    const bool found = co_await find_right(block, buffer->bytes(), token, all_right);
    if (found) {
      scatter(buffer->bytes(), memory, offset);
      if (!closing_.requested()) gate().spawn(repair(block));
      co_return Result<void>();
    }
    if (token.requested()) co_return fail(token.error());
  }
  notice_losses();
  if (!is_settled(block)) {
    gather(memory, offset, scratch_);
    table_.set(block, is_zero(scratch_) ? 0 : entry_of(block, scratch_));
    ++trusted_;
    co_return Result<void>();
  }
  ++corrupt_;
  env_.trace().record("checksum.corrupt", block, 0);
  co_return fail(Errc::kCorrupt, "a block is not what was written");
}

task::Task<Result<void>> ChecksumDrive::compare(DriveOp& op) {
  Result<Scratch> buffer = Scratch::make(env_, op.request.blocks * shape_.block_size);
  if (!buffer) co_return fail(buffer.error());
  Request request = op.request;
  request.kind = Request::Kind::kRead;
  request.durable = false;
  request.unstable_memory = false;
  const MutableBytes piece = buffer->bytes();
  const Result<void> done = co_await read_checked(request, {&piece, 1}, op.token());
  if (!done) co_return done;
  if (!holds(op.data(), 0, piece)) co_return fail(Errc::kMismatch, "the blocks differ");
  co_return done;
}

task::Task<Result<void>> ChecksumDrive::change(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, blocks.first, blocks.count, op.token());
  Result<void> done = co_await hold;
  if (done && claim_.is_due()) done = co_await claim_.check(op.token());
  if (!done) co_return done;
  Memory memory = op.data();
  if (op.request.kind == Request::Kind::kCompareAndWrite) {
    done = co_await compare(op);
    if (!done) co_return done;
    memory = op.second();
  }
  const Regions regions = regions_of(blocks);
  done = co_await intent_.enter(regions);
  if (done && op.token().requested()) done = fail(op.token().error());
  if (done) done = co_await change_held(op, memory);
  intent_.leave(regions);
  wake_sweeper();
  co_return done;
}

// The caller has the blocks alone, and their regions are marked.
task::Task<Result<void>> ChecksumDrive::change_held(DriveOp& op, Memory memory) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  Request request = op.request;
  request.lba = Lba(shape_.data_offset + blocks.first);
  if (request.kind == Request::Kind::kDiscard || request.kind == Request::Kind::kWriteZeroes) {
    Result<void> done = co_await below().submit(request, {}, {}, op.token());
    if (done) done = co_await table_.clear(blocks.first, blocks.count);
    if (!done) unsettle(regions_of(blocks));
    co_return done;
  }
  request.kind = Request::Kind::kWrite;
  Result<void> done;
  if (!table_.try_pin(blocks.first, blocks.count)) {
    done = co_await table_.pin(blocks.first, blocks.count, op.token());
  }
  if (!done) co_return done;
  done = co_await below().submit(request, memory, {}, op.token());
  if (done) {
    change_blocks(memory, scratch_, [&](size_t index, MutableBytes bytes) {
      table_.set(blocks.first + index, entry_of(blocks.first + index, bytes));
    });
  } else {
    unsettle(regions_of(blocks));
  }
  table_.unpin(blocks.first, blocks.count);
  co_return done;
}

task::Task<Result<void>> ChecksumDrive::save_marks(const RegionSet& marks, bool durable) {
  const Result<void> mine = co_await claim_.check();
  if (!mine) co_return mine;
  encode_checksum_bitmap(shape_, marks, bitmap_block_.bytes());
  const MutableBytes piece = bitmap_block_.bytes();
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = durable,
                        .metadata = true,
                        .lba = Lba(kChecksumBitmapBlock),
                        .blocks = 1};
  co_return co_await below().submit(request, {&piece, 1});
}

}  // namespace cairn::drive
