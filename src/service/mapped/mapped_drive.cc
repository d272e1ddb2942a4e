// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/mapped_drive.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "drive/copy_blocks.h"
#include "drive/pieces.h"
#include "drive/scratch.h"
#include "task/when_all.h"

namespace cairn::drive {

namespace {

using Kind = Request::Kind;

constexpr size_t kCopyMemory = 65536;

bool is_zero(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// What a hole answers.
Result<void> look_at_hole(Kind kind, std::span<const MutableBytes> pieces) {
  for (const MutableBytes piece : pieces) {
    if (kind == Kind::kRead) {
      std::memset(piece.data(), 0, piece.size());
    } else if (!is_zero(piece)) {
      return fail(Errc::kMismatch, "compare");
    }
  }
  return {};
}

bool is_zeroing(Kind kind) { return kind == Kind::kDiscard || kind == Kind::kWriteZeroes; }

}  // namespace

Geometry MappedDrive::geometry_on(const Geometry& below, uint64_t blocks, uint64_t chunk_blocks) {
  Geometry geometry = below;
  geometry.blocks = blocks;
  geometry.atomic_blocks =
      static_cast<uint32_t>(std::gcd<uint64_t>(below.atomic_blocks, chunk_blocks));
  geometry.discard_blocks =
      static_cast<uint32_t>(std::max<uint64_t>(below.discard_blocks, chunk_blocks));
  return geometry;
}

Extent MappedDrive::extent_at(Lba lba, uint64_t max) const {
  if (guard_->is_lost()) return {.blocks = std::min(max, geometry_.blocks - lba.value())};
  const bool is_hole = !find(lba.value() / chunk_blocks_);
  Extent extent{.blocks = 0, .is_hole = is_hole};
  while (extent.blocks < max) {
    const Run run = run_at(lba.value() + extent.blocks, max - extent.blocks);
    if (!run.place != is_hole) break;
    extent.blocks += run.count;
  }
  return extent;
}

MappedDrive::Run MappedDrive::run_at(uint64_t first, uint64_t max) const {
  uint64_t chunk = first / chunk_blocks_;
  Run run{.first = first, .count = chunk_blocks_ - first % chunk_blocks_, .place = find(chunk)};
  for (uint64_t next = 1; run.count < max; ++next, run.count += chunk_blocks_) {
    const std::optional<Place> place = find(++chunk);
    if (place.has_value() != run.place.has_value()) break;
    if (place && (place->leg != run.place->leg || place->unit != run.place->unit + next)) break;
  }
  run.count = std::min(run.count, max);
  return run;
}

MappedDrive::Run MappedDrive::change_at(uint64_t first, uint64_t max) const {
  Run run = run_at(first, max);
  uint64_t chunk = first / chunk_blocks_;
  const bool is_first_own = run.place && is_own(chunk);
  uint64_t count = std::min(chunk_blocks_ - first % chunk_blocks_, run.count);
  while (is_first_own && count < run.count && is_own(++chunk)) {
    count = std::min(count + chunk_blocks_, run.count);
  }
  run.count = count;
  return run;
}

task::Task<Result<void>> MappedDrive::run(DriveOp& op) {
  const uint64_t told = guard_->told();
  if (!guard_->is_sound()) {
    const Result<void> mended = co_await guard_->mend(op.token());
    if (!mended) co_return mended;
  }
  MapGuard::Use use(*guard_);
  const Result<void> done = co_await run_guarded(op);
  const Result<void> judged = use.judge(done);
  if (op.request.kind != Kind::kFlush) co_return judged;
  co_return guard_->tell(told, judged, op.token());
}

task::Task<Result<void>> MappedDrive::run_guarded(DriveOp& op) {
  switch (op.request.kind) {
    case Kind::kFlush:
      co_return co_await sync(op.token());
    case Kind::kRead:
    case Kind::kCompare: {
      const uint64_t chunk = op.request.lba.value() / chunk_blocks_;
      const uint64_t last = (op.request.lba.value() + op.request.blocks - 1) / chunk_blocks_;
      Ranges::Hold hold(ranges_, Ranges::Mode::kShared, chunk, last - chunk + 1, op.token());
      const Result<void> held = co_await hold;
      if (!held) co_return held;
      co_return co_await look(op, op.request.kind, op.data());
    }
    default:
      co_return co_await change(op);
  }
}

task::Task<Result<void>> MappedDrive::look(DriveOp& op, Kind kind, Memory memory) {
  const uint64_t first = op.request.lba.value();
  const uint64_t blocks = op.request.blocks;
  const Run whole = run_at(first, blocks);
  if (whole.count == blocks) co_return co_await look_at(op, kind, memory, whole);
  Join join;
  for (uint64_t done = 0; done < blocks;) {
    const Run run = run_at(first + done, blocks - done);
    join.add();
    gate().spawn(join_look(op, kind, memory, run, join));
    done += run.count;
  }
  co_return co_await join.all();
}

task::Task<void> MappedDrive::join_look(DriveOp& op, Kind kind, Memory memory, Run run,
                                        Join& join) {
  const Result<void> done = co_await look_at(op, kind, memory, run);
  join.finish(done);
}

task::Task<Result<void>> MappedDrive::look_at(DriveOp& op, Kind kind, Memory memory, Run run) {
  if (run.place) co_return co_await pass(op, kind, memory, run);
  Pieces pieces;
  pieces.add(memory, (run.first - op.request.lba.value()) * geometry_.block_size,
             run.count * geometry_.block_size);
  co_return look_at_hole(kind, pieces.all());
}

// As it is, to where the blocks lie.
task::Task<Result<void>> MappedDrive::pass(DriveOp& op, Kind kind, Memory memory, Run run) {
  const Spot at = spot(*run.place);
  if (at.drive == nullptr) co_return fail(Errc::kUnreachable, "the drive of these blocks is lost");
  Request request = op.request;
  request.kind = kind;
  request.durable = request.durable && request.writes();
  request.lba = Lba(at.block + run.first % chunk_blocks_);
  request.blocks = run.count;
  Result<void> done;
  if (run.count == op.request.blocks) {
    done = co_await at.drive->submit(request, memory, {}, op.token());
  } else {
    Pieces pieces;
    pieces.add(memory, (run.first - op.request.lba.value()) * geometry_.block_size,
               run.count * geometry_.block_size);
    done = co_await at.drive->submit(request, pieces.all(), {}, op.token());
  }
  if (request.writes()) wrote(*run.place);
  co_return done;
}

bool MappedDrive::needs_alone(const Request& request) const {
  if (request.kind != Kind::kWrite) return true;
  const uint64_t last = (request.lba.value() + request.blocks - 1) / chunk_blocks_;
  for (uint64_t chunk = request.lba.value() / chunk_blocks_; chunk <= last; ++chunk) {
    if (!find(chunk) || !is_own(chunk)) return true;
  }
  return false;
}

task::Task<Result<void>> MappedDrive::change(DriveOp& op) {
  if (Result<void> allowed = check_change(); !allowed) co_return allowed;
  if (op.request.blocks == 0) co_return Result<void>();
  if (Claim* mine = claim(); mine != nullptr && mine->is_due()) {
    const Result<void> checked = co_await mine->check(op.token());
    if (!checked) co_return checked;
  }
  const uint64_t chunk = op.request.lba.value() / chunk_blocks_;
  const uint64_t last = (op.request.lba.value() + op.request.blocks - 1) / chunk_blocks_;
  bool is_alone = needs_alone(op.request);
  std::optional<Ranges::Hold> hold;
  hold.emplace(ranges_, is_alone ? Ranges::Mode::kExclusive : Ranges::Mode::kShared, chunk,
               last - chunk + 1, op.token());
  Result<void> done = co_await *hold;
  // While it waited, a chunk may have got another place that is not its own.
  if (done && !is_alone && needs_alone(op.request)) {
    hold.emplace(ranges_, Ranges::Mode::kExclusive, chunk, last - chunk + 1, op.token());
    done = co_await *hold;
  }
  if (done && op.request.kind == Kind::kCompareAndWrite) {
    done = co_await look(op, Kind::kCompare, op.data());
    if (done) done = co_await change_blocks(op, op.second());
  } else if (done) {
    done = co_await change_blocks(op, op.data());
  }
  hold.reset();
  if (done && must_be_durable(op.request)) done = co_await commit(op.token());
  co_return done;
}

task::Task<Result<void>> MappedDrive::change_blocks(DriveOp& op, Memory memory) {
  const uint64_t first = op.request.lba.value();
  const uint64_t blocks = op.request.blocks;
  const Run whole = change_at(first, blocks);
  if (whole.count == blocks) co_return co_await change_run(op, memory, whole);
  Join join;
  for (uint64_t done = 0; done < blocks;) {
    const Run run = change_at(first + done, blocks - done);
    done += run.count;
    // Whole drives are discarded at once: holes cost nothing.
    if (!run.place && is_zeroing(op.request.kind)) continue;
    join.add();
    gate().spawn(join_change(op, memory, run, join));
  }
  co_return co_await join.all();
}

task::Task<void> MappedDrive::join_change(DriveOp& op, Memory memory, Run run, Join& join) {
  const Result<void> done = co_await change_run(op, memory, run);
  join.finish(done);
}

task::Task<Result<void>> MappedDrive::change_run(DriveOp& op, Memory memory, Run run) {
  if (is_zeroing(op.request.kind)) co_return co_await zero(op, run);
  if (run.place && is_own(run.first / chunk_blocks_)) {
    co_return co_await pass(op, Kind::kWrite, memory, run);
  }
  co_return co_await replace(op, memory, run);
}

// Chunks that are covered become holes; of others the blocks become zeroes.
task::Task<Result<void>> MappedDrive::zero(DriveOp& op, Run run) {
  if (!run.place) co_return Result<void>();
  const bool keeps = op.request.kind == Kind::kWriteZeroes && op.request.keep_space;
  const uint64_t chunk = run.first / chunk_blocks_;
  const bool own = is_own(chunk);
  if (keeps && own) co_return co_await pass(op, Kind::kWriteZeroes, {}, run);
  for (uint64_t done = 0; done < run.count;) {
    const uint64_t first = run.first + done;
    const uint64_t count = std::min(chunk_blocks_ - first % chunk_blocks_, run.count - done);
    done += count;
    const bool is_end = first + count == geometry_.blocks;
    const bool is_whole = first % chunk_blocks_ == 0 && (count == chunk_blocks_ || is_end);
    if (!keeps && is_whole && can_unmap(first / chunk_blocks_)) {
      unmap(first / chunk_blocks_);
      continue;
    }
    Run part{.first = first, .count = count, .place = find(first / chunk_blocks_)};
    Result<void> zeroed;
    if (own) {
      zeroed = co_await pass(op, op.request.kind, {}, part);
    } else {
      zeroed = co_await replace(op, {}, part);
    }
    if (!zeroed) co_return zeroed;
  }
  co_return Result<void>();
}

// A new place for a chunk of which these blocks change.
task::Task<Result<void>> MappedDrive::replace(DriveOp& op, Memory memory, Run run) {
  const Result<Place> place = co_await allocate(op.token());
  if (!place) co_return fail(place.error());
  const uint64_t chunk = run.first / chunk_blocks_;
  const uint64_t head = run.first % chunk_blocks_;
  const uint64_t tail = head + run.count;
  const bool durable = must_be_durable(op.request) || is_flushed_apart(*place);
  const Priority priority = op.request.priority;
  const Part first{.first = 0, .count = head, .durable = durable, .priority = priority};
  const Part last{
      .first = tail, .count = chunk_blocks_ - tail, .durable = durable, .priority = priority};
  const auto [before, data, after] = co_await task::when_all(
      fill(run.place, *place, first, op.token()), put(op, memory, run, *place, durable),
      fill(run.place, *place, last, op.token()));
  for (const Result<void>& done : {before, data, after}) {
    if (done) continue;
    forsake(*place);
    co_return done;
  }
  // What was copied may be of another chunk.
  if (!guard_->is_sound()) {
    forsake(*place);
    co_return fail(Errc::kIo, "the drive below lost writes that were not flushed");
  }
  map(chunk, *place, durable ? Journal::Needs::kNothing : Journal::Needs::kData);
  co_return Result<void>();
}

task::Task<Result<void>> MappedDrive::put(DriveOp& op, Memory memory, Run run, Place place,
                                          bool durable) {
  const Spot at = spot(place);
  Request request = op.request;
  request.kind = is_zeroing(op.request.kind) ? Kind::kWriteZeroes : Kind::kWrite;
  request.durable = durable;
  request.lba = Lba(at.block + run.first % chunk_blocks_);
  request.blocks = run.count;
  Pieces pieces;
  pieces.add(memory, (run.first - op.request.lba.value()) * geometry_.block_size,
             run.count * geometry_.block_size);
  co_return co_await at.drive->submit(request, pieces.all(), {}, op.token());
}

task::Task<Result<void>> MappedDrive::fill(std::optional<Place> from, Place to, Part part,
                                           task::CancelToken token) {
  if (part.count == 0) co_return Result<void>();
  const Spot target = spot(to);
  Request write{.kind = from ? Kind::kWrite : Kind::kWriteZeroes,
                .durable = part.durable,
                .priority = part.priority,
                .lba = Lba(target.block + part.first),
                .blocks = part.count};
  if (!from) co_return co_await target.drive->submit(write, {}, {}, token);
  const Spot source = spot(*from);
  if (source.drive == nullptr) {
    co_return fail(Errc::kUnreachable, "the drive of these blocks is lost");
  }
  const uint64_t max = std::min<uint64_t>(part.count, geometry_.transfer_blocks);
  const uint64_t step = std::clamp<uint64_t>(kCopyMemory / geometry_.block_size, 1, max);
  const Result<Scratch> memory = Scratch::make(env_, step * geometry_.block_size);
  if (!memory) co_return fail(memory.error());
  Request read{.priority = part.priority};
  for (uint64_t done = 0; done < part.count; done += step) {
    write.lba = Lba(target.block + part.first + done);
    write.blocks = std::min(step, part.count - done);
    read.lba = Lba(source.block + part.first + done);
    read.blocks = write.blocks;
    const MutableBytes pieces[] = {memory->first(write.blocks * geometry_.block_size)};
    Result<void> moved = co_await source.drive->submit(read, pieces, {}, token);
    if (moved) moved = co_await write_copy(*target.drive, write, pieces[0], token);
    if (!moved) co_return moved;
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
