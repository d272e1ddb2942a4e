// SPDX-License-Identifier: Apache-2.0
#include "service/layout/layout.h"

#include <algorithm>
#include <numeric>

#include "drive/pieces.h"

namespace cairn::drive {

Extent LayoutDrive::extent_at(Lba lba, uint64_t max) const {
  const LegPosition position = locate(lba.value());
  return below(position.leg).extent_at(Lba(position.block), std::min(position.run, max));
}

task::Task<Result<void>> LayoutDrive::run(DriveOp& op) {
  const Request& request = op.request;
  if (request.kind == Request::Kind::kFlush) co_return co_await flush_all(op);
  const LegPosition position = locate(request.lba.value());
  const bool is_whole = position.run >= request.blocks;
  if (request.kind == Request::Kind::kCompareAndWrite && !is_whole) {
    co_return co_await compare_and_write(op);
  }
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, request.lba.value(), request.blocks,
                    op.token());
  if (request.writes()) {
    Result<void> held = co_await hold;
    if (!held) co_return held;
  }
  if (is_whole) {
    Request moved = request;
    moved.lba = Lba(position.block);
    co_return co_await below(position.leg).submit(moved, op.data(), op.second(), op.token());
  }
  co_return co_await spread(op, request.kind, op.data());
}

task::Task<Result<void>> LayoutDrive::compare_and_write(DriveOp& op) {
  Ranges::Hold alone(ranges_, Ranges::Mode::kExclusive, op.request.lba.value(), op.request.blocks,
                     op.token());
  Result<void> done = co_await alone;
  if (done) done = co_await spread(op, Request::Kind::kCompare, op.data());
  if (done) done = co_await spread(op, Request::Kind::kWrite, op.second());
  co_return done;
}

task::Task<Result<void>> LayoutDrive::flush_all(DriveOp& op) {
  // A leg tells once; a flush that overlaps that one, and is done before it, must hear of it too.
  const uint64_t told = losses_.told();
  Join join;
  for (size_t leg = 0; leg < below_count(); ++leg) {
    join.add();
    gate().spawn(flush_leg(op, leg, join));
  }
  const Result<void> done = co_await join.all();
  if (op.token().requested()) co_return done;
  co_return losses_.tell(told, done);
}

task::Task<void> LayoutDrive::flush_leg(DriveOp& op, size_t leg, Join& join) {
  const Result<void> done = co_await below(leg).submit(op.request, {}, {}, op.token());
  losses_.flushed(done, op.token());
  join.finish(done);
}

task::Task<Result<void>> LayoutDrive::spread(DriveOp& op, Request::Kind kind, Memory memory) {
  constexpr size_t kRunsAtOnce = 64;
  const uint64_t first = op.request.lba.value();
  Result<void> outcome;
  for (uint64_t done = 0; outcome && done < op.request.blocks;) {
    Join join;
    for (size_t i = 0; i < kRunsAtOnce && done < op.request.blocks; ++i) {
      join.add();
      gate().spawn(run_one(op, kind, memory, done, join));
      done += std::min(locate(first + done).run, op.request.blocks - done);
    }
    outcome = co_await join.all();
  }
  co_return outcome;
}

task::Task<void> LayoutDrive::run_one(DriveOp& op, Request::Kind kind, Memory memory, uint64_t done,
                                      Join& join) {
  const LegPosition position = locate(op.request.lba.value() + done);
  Request part = op.request;
  part.kind = kind;
  part.lba = Lba(position.block);
  part.blocks = std::min(position.run, op.request.blocks - done);
  Pieces pieces;
  pieces.add(memory, done * geometry_.block_size, part.blocks * geometry_.block_size);
  const Result<void> ran = co_await below(position.leg).submit(part, pieces.all(), {}, op.token());
  join.finish(ran);
}

task::Task<Result<void>> LegsDrive::spread(DriveOp& op, Request::Kind kind, Memory memory) {
  const Range all{op.request.lba.value(), op.request.blocks};
  Join join;
  for (size_t leg = 0; leg < below_count(); ++leg) {
    if (leg_range(leg, all).count == 0) continue;
    join.add();
    gate().spawn(run_part(op, kind, memory, leg, join));
  }
  co_return co_await join.all();
}

task::Task<void> LegsDrive::run_part(DriveOp& op, Request::Kind kind, Memory memory, size_t leg,
                                     Join& join) {
  const Range all{op.request.lba.value(), op.request.blocks};
  const Range here = leg_range(leg, all);
  Request part = op.request;
  part.kind = kind;
  part.lba = Lba(here.first);
  part.blocks = here.count;
  Pieces pieces;
  // Of zeroes no memory is looked for: whole drives are discarded at once.
  const bool moves_data = kind != Request::Kind::kDiscard && kind != Request::Kind::kWriteZeroes;
  for (uint64_t done = 0; moves_data && done < all.count;) {
    const LegPosition position = locate(all.first + done);
    const uint64_t run = std::min(position.run, all.count - done);
    if (position.leg == leg) {
      pieces.add(memory, done * geometry_.block_size, run * geometry_.block_size);
    }
    done += run;
  }
  const Result<void> done = co_await below(leg).submit(part, pieces.all(), {}, op.token());
  join.finish(done);
}

Result<void> check_same_blocks(const std::vector<std::unique_ptr<Drive>>& legs) {
  for (const std::unique_ptr<Drive>& leg : legs) {
    if (leg->geometry().block_size != legs[0]->geometry().block_size) {
      return fail(Errc::kInvalid, "its drives have different block sizes; one has",
                  static_cast<int32_t>(leg->geometry().block_size));
    }
  }
  return {};
}

Geometry LayoutDrive::common_geometry(uint64_t seams) const {
  Geometry common = below().geometry();
  common.blocks = 0;
  uint64_t atomic = seams;
  for (size_t leg = 0; leg < below_count(); ++leg) {
    const Geometry& one = below(leg).geometry();
    common.transfer_blocks = std::min(common.transfer_blocks, one.transfer_blocks);
    common.discard_blocks = std::max(common.discard_blocks, one.discard_blocks);
    common.optimal_blocks = std::max(common.optimal_blocks, one.optimal_blocks);
    common.volatile_cache |= one.volatile_cache;
    common.copies = std::min(common.copies, one.copies);
    atomic = std::gcd(atomic, one.atomic_blocks);
  }
  common.atomic_blocks = static_cast<uint32_t>(atomic);
  return common;
}

}  // namespace cairn::drive
