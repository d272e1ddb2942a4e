// SPDX-License-Identifier: Apache-2.0
#include "service/mapped/placed_drive.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "drive/pieces.h"
#include "drive/scatter.h"
#include "drive/scratch.h"
#include "drive/stable_memory.h"

namespace cairn::drive {

namespace {

using Kind = Request::Kind;

constexpr uint64_t kTransferBytes = 1_MiB;
// Units beyond what is promised, so that data can be written anew before the old makes room.
constexpr uint64_t kSpareUnits = 64;

uint64_t promise_of(uint64_t units, uint64_t grain) {
  const uint64_t spare = std::max(kSpareUnits, units / 32);
  return units > spare ? align_down(units - spare, grain) : 0;
}

Result<MappedLayout> plan_new(const Geometry& below, const PlacedPlan& plan) {
  const uint64_t wanted = plan.virtual_bytes / below.block_size;
  if (plan.virtual_bytes % (plan.grain * below.block_size) != 0 || wanted >= kMappedChunksMax - 1) {
    return fail(Errc::kInvalid,
                "virtual is a multiple of what is stored together, and less than 2^32 - 1 blocks; "
                "blocks stored together",
                static_cast<int32_t>(plan.grain));
  }
  const uint64_t max = wanted != 0 ? wanted : below.blocks;
  Result<MappedLayout> layout = plan_layout(below, {.chunk_bytes = below.block_size,
                                                    .records_per_unit = 0,
                                                    .records_more = max / plan.grain,
                                                    .record_size = plan.record_size});
  if (!layout) return layout;
  layout->blocks = wanted != 0 ? wanted : promise_of(layout->units, plan.grain);
  if (layout->blocks == 0) {
    return fail(Errc::kInvalid, "the drive below is too small: use 1M or more");
  }
  return layout;
}

}  // namespace

task::Task<Result<PlacedFound>> look_for_placed(env::Env& env, Drive& below, PlacedPlan plan) {
  Result<std::optional<Label>> label =
      co_await find_label(env, below, plan.kind, {.may_format = plan.may_format});
  if (!label) co_return fail(label.error());
  if (!*label) {
    const Result<MappedLayout> layout = plan_new(below.geometry(), plan);
    if (!layout) co_return fail(layout.error());
    co_return PlacedFound{.label = new_label(env, below), .layout = *layout, .is_new = true};
  }
  const Result<MappedLayout> layout = decode_layout((*label)->body, below.geometry());
  if (!layout) co_return fail(layout.error());
  if (layout->chunk_blocks != 1 || layout->blocks % plan.grain != 0) {
    co_return fail(Errc::kCorrupt, "the label's numbers make no sense");
  }
  if (plan.virtual_bytes != 0 && plan.virtual_bytes != layout->blocks * (*label)->block_size) {
    co_return fail(Errc::kInvalid, "the drive has another size: leave out virtual");
  }
  co_return PlacedFound{.label = std::move(**label), .layout = *layout};
}

PlacedDrive::PlacedDrive(env::Env& env, std::vector<std::unique_ptr<Drive>> drives,
                         PlacedFound found, LabelKind kind, uint64_t grain)
    : ServiceDrive(std::move(drives)),
      env_(env),
      found_(std::move(found)),
      kind_(kind),
      grain_(grain),
      claim_(env, below(), found_.label),
      units_(below(), found_.layout.place()),
      guard_(env, *this, gate()) {
  guard_.add(below());
  geometry_ = below().geometry();
  geometry_.blocks = found_.layout.blocks;
  const uint64_t max =
      std::min<uint64_t>(kTransferBytes, env.buffers().size_max()) / geometry_.block_size;
  geometry_.transfer_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(geometry_.transfer_blocks, max));
  geometry_.optimal_blocks = static_cast<uint32_t>(grain);
  geometry_.discard_blocks = static_cast<uint32_t>(grain);
  geometry_.atomic_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(grain, geometry_.transfer_blocks));
  geometry_.volatile_cache = true;
  geometry_.copies = 1;
}

task::Task<Result<void>> PlacedDrive::begin() {
  guard_.begin();
  const Result<void> started = co_await Journal::start(
      {env_, below(), found_.layout.journal(), kind_, found_.label, *this, claim_}, found_.is_new,
      journal_);
  if (started) units_.reclaim(env_, claim_);
  if (!started || !found_.is_new) co_return started;
  found_.label.body = encode_layout(found_.layout);
  co_return co_await finish_label(env_, below(), kind_, found_.label);
}

task::Task<void> PlacedDrive::close() {
  co_await gate().close();
  if (journal_ != nullptr) co_await journal_->close();
  co_await units_.close();
  co_await ServiceDrive::close();
}

Ranges::Hold PlacedDrive::hold(DriveOp& op, Ranges::Mode mode) {
  const uint64_t first = op.request.lba.value() / grain_;
  const uint64_t last = (op.request.lba.value() + op.request.blocks - 1) / grain_;
  return {ranges_, mode, first, last - first + 1, op.token()};
}

task::Task<Result<void>> PlacedDrive::reload_map() {
  co_await units_.restart();
  forget_map();
  co_return co_await journal_->reload();
}

task::Task<Result<void>> PlacedDrive::run(DriveOp& op) {
  // Blocks are hashed, then written; and units are read and written as memory of this drive.
  if (has_unstable_memory(op.request) && op.request.kind != Kind::kCompare) {
    co_return co_await run_on_copy(env_, *this, op);
  }
  const uint64_t told = guard_.told();
  if (!guard_.is_sound()) {
    const Result<void> mended = co_await guard_.mend(op.token());
    if (!mended) co_return mended;
  }
  MapGuard::Use use(guard_);
  const Result<void> done = co_await run_guarded(op);
  const Result<void> judged = use.judge(done);
  if (op.request.kind != Kind::kFlush) co_return judged;
  co_return guard_.tell(told, judged, op.token());
}

task::Task<Result<void>> PlacedDrive::run_guarded(DriveOp& op) {
  if (op.request.kind == Kind::kFlush) {
    Result<void> done = co_await journal_->sync(op.token());
    units_.return_some(*journal_);
    co_return done;
  }
  if (op.request.writes()) co_return co_await change(op);
  Ranges::Hold held = hold(op, Ranges::Mode::kShared);
  const Result<void> done = co_await held;
  if (!done) co_return done;
  if (op.request.kind == Kind::kCompare) co_return co_await compare(op);
  co_return co_await read_blocks({op.request.lba.value(), op.request.blocks}, op.data(),
                                 op.token());
}

task::Task<Result<void>> PlacedDrive::compare(DriveOp& op) {
  Result<Scratch> buffer = Scratch::make(env_, op.request.blocks * geometry_.block_size);
  if (!buffer) co_return fail(buffer.error());
  const MutableBytes piece = buffer->bytes();
  const Result<void> done =
      co_await read_blocks({op.request.lba.value(), op.request.blocks}, {&piece, 1}, op.token());
  if (!done) co_return done;
  if (!holds(op.data(), 0, piece)) co_return fail(Errc::kMismatch, "the blocks differ");
  co_return done;
}

task::Task<Result<void>> PlacedDrive::change(DriveOp& op) {
  const Span blocks{op.request.lba.value(), op.request.blocks};
  if (blocks.count == 0) co_return Result<void>();
  if (claim_.is_due()) {
    const Result<void> mine = co_await claim_.check(op.token());
    if (!mine) co_return mine;
  }
  Ranges::Hold held = hold(op, Ranges::Mode::kExclusive);
  Result<void> done = co_await held;
  if (!done) co_return done;
  if (op.request.kind == Kind::kCompareAndWrite) {
    done = co_await compare(op);
    if (done) done = co_await write_blocks(blocks, op.second(), op.token());
  } else if (op.request.kind == Kind::kWrite) {
    done = co_await write_blocks(blocks, op.data(), op.token());
  } else {
    done = co_await zero_blocks(blocks, op.token());
  }
  held.leave();
  if (done && op.request.durable) done = co_await journal_->commit(op.token());
  units_.return_some(*journal_);
  co_return done;
}

task::Task<Result<std::vector<uint32_t>>> PlacedDrive::take(size_t count, task::CancelToken token) {
  while (space().free() < count) {
    if (token.requested()) co_return fail(token.error());
    Result<void> done = co_await units_.bring_back(*journal_, token);
    if (!done) co_return fail(done.error());
    if (space().free() >= count) break;
    // Whoever is placing data gives up what it replaces.
    if (placing_ == 0 && units_.returning() == 0) {
      co_return fail(Errc::kNoSpace, "all space below is in use: discard something");
    }
    if (placing_ == 0) continue;
    placed_.reset();
    done = co_await placed_.wait(token);
    if (!done) co_return fail(done.error());
  }
  std::vector<uint32_t> units(count);
  for (uint32_t& unit : units) unit = static_cast<uint32_t>(*space().take());
  ++placing_;
  co_return units;
}

void PlacedDrive::settled() {
  --placing_;
  placed_.set();
}

void PlacedDrive::give_back(std::span<const uint32_t> units) {
  for (const uint32_t unit : units) {
    const Result<void> given = space().give(unit);
    CHECK(given.has_value());
  }
}

void PlacedDrive::release(uint32_t unit, uint64_t record) {
  const Result<void> given = space().give_after(unit, record);
  CHECK(given.has_value());
}

task::Task<Result<void>> PlacedDrive::read_units(std::span<const uint32_t> units, Memory memory,
                                                 size_t offset, task::CancelToken token) {
  return move_units(Kind::kRead, units, memory, offset, token);
}
task::Task<Result<void>> PlacedDrive::write_units(std::span<const uint32_t> units, Memory memory,
                                                  size_t offset, task::CancelToken token) {
  return move_units(Kind::kWrite, units, memory, offset, token);
}

task::Task<Result<void>> PlacedDrive::move_units(Kind kind, std::span<const uint32_t> units,
                                                 Memory memory, size_t offset,
                                                 task::CancelToken token) {
  while (!units.empty()) {
    size_t count = 1;
    while (count < units.size() && count < geometry_.transfer_blocks &&
           units[count] == units[0] + count) {
      ++count;
    }
    Pieces pieces;
    pieces.add(memory, offset, count * geometry_.block_size);
    const Request request{.kind = kind, .lba = Lba(units_.block_of(units[0])), .blocks = count};
    const Result<void> done = co_await below().submit(request, pieces.all(), {}, token);
    if (!done) co_return done;
    units = units.subspan(count);
    offset += count * geometry_.block_size;
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
