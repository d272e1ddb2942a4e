// SPDX-License-Identifier: Apache-2.0
#include "service/integrity/atomic.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "base/buffer.h"
#include "drive/losses.h"
#include "drive/ranges.h"
#include "drive/scratch.h"
#include "service/common/service_drive.h"
#include "service/integrity/atomic_format.h"
#include "service/integrity/redo_log.h"

namespace cairn::drive {

namespace {

using Kind = Request::Kind;
using Memory = std::span<const MutableBytes>;

class Atomic final : public ServiceDrive {
 public:
  Atomic(env::Env& env, std::vector<std::unique_ptr<Drive>> drives, Label label,
         const AtomicLayout& layout, uint32_t unit)
      : ServiceDrive(std::move(drives)),
        env_(env),
        data_first_(layout.data_first),
        log_blocks_(layout.log_blocks),
        log_(env, below(), std::move(label), layout, unit, losses_) {
    geometry_ = below().geometry();
    geometry_.blocks = layout.data_blocks;
    geometry_.atomic_blocks = unit;
  }

  task::Task<Result<void>> recover() { return log_.recover(); }

  Extent extent_at(Lba lba, uint64_t max) const override {
    const uint64_t left = geometry_.blocks - lba.value();
    // A write whose request is gone may be on its way to a hole.
    const bool is_lost = log_.is_broken() || log_.has_lost();
    if (ranges_.has_exclusive() || is_lost) return {.blocks = std::min(max, left)};
    return below().extent_at(Lba(lba.value() + data_first_), std::min(max, left));
  }
  std::vector<Fact> facts() const override {
    const RedoLog::Counts& counts = log_.counts();
    return {{"writes_logged", counts.writes},    {"writes_direct", direct_},
            {"log_writes", counts.batches},      {"log_emptied", counts.emptied},
            {"log_blocks", log_blocks_},         {"log_blocks_used", log_.used_blocks()},
            {"writes_replayed", counts.replayed}};
  }
  task::Task<void> close() override {
    co_await gate().close();
    co_await log_.close();
    co_await below().close();
  }

 private:
  // Where a request waits for its logged write. Whoever leaves early cuts the tie.
  struct Tie {
    Tie** other = nullptr;  // how the write finds this
    Result<void> result;
    task::Event done;
  };

  task::Task<Result<void>> run(DriveOp& op) override;
  task::Task<Result<void>> look(DriveOp& op);
  task::Task<Result<void>> change(DriveOp& op);
  task::Task<Result<void>> log(DriveOp& op, std::unique_ptr<Ranges::Hold> hold);
  task::Task<void> carry(uint64_t first, Scratch data, std::unique_ptr<Ranges::Hold> hold,
                         Tie* tie);
  task::Task<Result<void>> pass(DriveOp& op, Kind kind);
  task::Task<Result<void>> flush(DriveOp& op);
  bool is_whole_below(const Request& request) const;
  // Whether the drive below was restarted since there were so many losses; another request may have
  // noticed it meanwhile.
  bool has_lost_since(uint64_t losses) const {
    return log_.has_lost() || losses != losses_.count();
  }

  env::Env& env_;
  const uint64_t data_first_;
  const uint64_t log_blocks_;
  Ranges ranges_;  // changes are alone with their blocks; reads share them
  Losses losses_;
  RedoLog log_;
  uint64_t direct_ = 0;
};

task::Task<Result<void>> Atomic::run(DriveOp& op) {
  if (op.request.kind == Kind::kFlush) return flush(op);
  return op.request.writes() ? change(op) : look(op);
}

task::Task<Result<void>> Atomic::pass(DriveOp& op, Kind kind) {
  Request request = op.request;
  request.kind = kind;
  if (kind != Kind::kFlush) request.lba = Lba(op.request.lba.value() + data_first_);
  const bool needs_both = kind == Kind::kCompareAndWrite;
  const Result<void> done =
      co_await below().submit(request, op.data(), needs_both ? op.second() : Memory(), op.token());
  co_return done;
}

task::Task<Result<void>> Atomic::flush(DriveOp& op) {
  const uint64_t told = losses_.told();
  log_.notice_losses();
  const Result<void> done = co_await pass(op, Kind::kFlush);
  log_.notice_losses();
  if (op.token().requested()) co_return done;
  losses_.flushed(done);
  if (!done) log_.lose();
  co_return losses_.tell(told, done);
}

task::Task<Result<void>> Atomic::look(DriveOp& op) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kShared, op.request.lba.value(), op.request.blocks,
                    op.token());
  const Result<void> held = co_await hold;
  if (!held) co_return held;
  Result<void> done;
  uint64_t losses = 0;
  do {
    log_.notice_losses();
    if (log_.is_broken() && log_.holds(op.request.lba.value(), op.request.blocks)) {
      const Result<void> mended = co_await log_.empty();
      if (!mended) co_return mended;
    }
    losses = losses_.count();
    done = co_await pass(op, op.request.kind);
  } while (has_lost_since(losses));
  co_return done;
}

bool Atomic::is_whole_below(const Request& request) const {
  const uint64_t unit = below().geometry().atomic_blocks;
  const uint64_t first = data_first_ + request.lba.value();
  return first / unit == (first + request.blocks - 1) / unit;
}

task::Task<Result<void>> Atomic::change(DriveOp& op) {
  const Request& request = op.request;
  const uint64_t first = request.lba.value();
  auto hold = std::make_unique<Ranges::Hold>(ranges_, Ranges::Mode::kExclusive, first,
                                             request.blocks, op.token());
  const Result<void> held = co_await *hold;
  if (!held) co_return held;

  const bool has_data = request.kind == Kind::kWrite || request.kind == Kind::kCompareAndWrite;
  const bool is_small = has_data && request.blocks <= geometry_.atomic_blocks;
  log_.notice_losses();
  const bool is_in_log = log_.holds(first, request.blocks);
  if (is_in_log && (!is_small || log_.is_broken())) {
    const Result<void> emptied = co_await log_.empty();
    if (!emptied) co_return emptied;
  } else if (is_small && (is_in_log || !is_whole_below(request))) {
    if (request.kind == Kind::kCompareAndWrite) {
      const uint64_t losses = losses_.count();
      const Result<void> equal = co_await pass(op, Kind::kCompare);
      if (has_lost_since(losses)) {
        co_return fail(Errc::kIo, "the drive below was restarted meanwhile: compare again");
      }
      if (!equal) co_return equal;
    }
    const Result<void> logged = co_await log(op, std::move(hold));
    co_return logged;
  }
  if (log_.claim().is_due()) {
    const Result<void> mine = co_await log_.claim().check(op.token());
    if (!mine) co_return mine;
  }
  ++direct_;
  const Result<void> done = co_await pass(op, request.kind);
  co_return done;
}

task::Task<Result<void>> Atomic::log(DriveOp& op, std::unique_ptr<Ranges::Hold> hold) {
  const uint64_t first = op.request.lba.value();
  Result<Scratch> copy = Scratch::make(env_, op.request.blocks * geometry_.block_size);
  if (!copy) co_return fail(copy.error());
  const Memory memory = op.request.kind == Kind::kWrite ? op.data() : op.second();
  std::byte* to = copy->data();
  for (const MutableBytes piece : memory) to = std::ranges::copy(piece, to).out;
  Tie tie;
  gate().spawn(carry(first, std::move(*copy), std::move(hold), &tie));
  const Result<void> waited = co_await tie.done.wait(op.token());
  if (waited) co_return tie.result;
  if (tie.other != nullptr) *tie.other = nullptr;
  co_return waited;
}

// The log takes a copy with it, so that a request that is cancelled need not wait and its memory
// may change; the blocks stay held until the write is in place.
task::Task<void> Atomic::carry(uint64_t first, Scratch data, std::unique_ptr<Ranges::Hold> hold,
                               Tie* tie) {
  tie->other = &tie;
  Result<void> done = co_await log_.append(first, data.bytes());
  if (done) {
    done = co_await below().write(Lba(first + data_first_), data.bytes());
    log_.placed(done);
  }
  hold.reset();
  if (tie == nullptr) co_return;
  tie->other = nullptr;
  tie->result = done;
  tie->done.set();
}

AtomicLayout make_layout(const Geometry& shape, uint64_t log_bytes, uint64_t unit) {
  AtomicLayout layout{.log_blocks = log_bytes / shape.block_size};
  layout.data_first = align_up(kLabelBlocks + layout.log_blocks, unit);
  layout.data_blocks = shape.blocks > layout.data_first ? shape.blocks - layout.data_first : 0;
  return layout;
}

task::Task<Result<std::unique_ptr<Drive>>> open_atomic(ServiceParts parts) {
  Drive& below = *parts.below[0];
  const Geometry& shape = below.geometry();
  const uint64_t unit_bytes = parts.options.number("unit");
  if (!std::has_single_bit(unit_bytes) || unit_bytes < shape.block_size) {
    co_return fail(Errc::kInvalid, "unit is a power of two, a block of the drive or more");
  }
  const uint64_t unit =
      std::min<uint64_t>(unit_bytes / shape.block_size, std::bit_floor(shape.transfer_blocks));
  Result<std::optional<Label>> read =
      co_await find_label(parts.env, below, kAtomicLabel, {.may_format = parts.may_format});
  if (!read) co_return fail(read.error());
  const bool is_new = !*read;
  Label label = is_new ? new_label(parts.env, below) : std::move(**read);
  label.writer = 0;  // batches of the log go by the generation: it is claimed when they are placed
  if (is_new) {
    label.body = encode_atomic_layout(make_layout(shape, parts.options.number("log"), unit));
  }
  const Result<AtomicLayout> layout = decode_atomic_layout(label);
  if (!layout && is_new) {
    co_return fail(Errc::kInvalid,
                   "the drive below is too small: it needs the log and a unit more");
  }
  if (!layout) co_return fail(layout.error());
  if (layout->log_blocks <= unit) {
    co_return fail(Errc::kInvalid, "the log has no room for a write of that unit: it has blocks",
                   static_cast<int32_t>(layout->log_blocks));
  }
  if (is_new) {
    Result<void> written = co_await begin_label(parts.env, below, kAtomicLabel, label);
    if (written) written = co_await finish_label(parts.env, below, kAtomicLabel, label);
    if (!written) co_return fail(written.error());
  }
  auto drive = std::make_unique<Atomic>(parts.env, std::move(parts.below), std::move(label),
                                        *layout, static_cast<uint32_t>(unit));
  const Result<void> recovered = co_await drive->recover();
  if (recovered) co_return std::move(drive);
  co_await drive->close();
  co_return fail(recovered.error());
}

constexpr ServiceOption kOptions[] = {
    {.key = "unit",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "64K",
     .what = "writes up to this size are atomic",
     .min = 512,
     .max = 1048576},
    {.key = "log",
     .kind = ServiceOption::Kind::kSize,
     .default_value = "1M",
     .what = "space for writes on their way, when the drive is new",
     .min = 65536,
     .max = uint64_t{1} << 30},
};

}  // namespace

constexpr Service kAtomic{.name = "atomic",
                          .what = "writes of several blocks happen wholly or not at all",
                          .example = "atomic({}, unit=64K, log=512K)",
                          .options = kOptions,
                          .open = open_atomic};

}  // namespace cairn::drive
