// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_log.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "drive/scratch.h"
#include "service/raid/parity_replay.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kUnitBytes = 4096;
constexpr Duration kBufferRetry = 1_ms;  // when buffers of a drive below are all out

}  // namespace

ParityLog::ParityLog(const ParityContext& context, ParityLegs& legs, ParityEpoch& epoch)
    : context_(context), legs_(legs), epoch_(epoch), head_(context.shape.log_blocks) {}

// An update has at most twice a buffer per leg: what was there, and what comes.
uint64_t ParityLog::units_of(uint64_t rows) const {
  const uint64_t bytes =
      std::min(rows, context_.shape.slice) * context_.shape.block_size * legs_.size() * 2;
  return std::clamp<uint64_t>(bytes / kUnitBytes, 1, kUnits);
}

task::Task<Result<task::Units>> ParityLog::stop_updates(task::CancelToken token) {
  const Result<void> got = co_await units_.acquire(kUnits, token);
  if (!got) co_return fail(got.error());
  co_return task::Units(units_, kUnits);
}

task::Task<Result<void>> ParityLog::admit(ParityUpdate& update, task::CancelToken token) {
  const uint64_t wanted = units_of(update.rows.count);
  const uint64_t room = update.is_zeroes() ? 1 : 1 + update.rows.count;
  for (;;) {
    const Result<void> got = co_await units_.acquire(wanted, token);
    if (!got) co_return got;
    update.units = task::Units(units_, wanted);
    if (legs_.claim().is_due()) {
      const Result<void> owned = co_await legs_.check_claim(token);
      if (!owned) co_return owned;
    }
    if (is_stuck()) co_return stuck();
    if (head_ + room <= context_.shape.log_blocks) break;
    update.units.release();
    const Result<void> emptied = co_await make_space(room, token);
    if (!emptied) co_return emptied;
  }
  update.position = head_;
  head_ += room;
  epoch_.note_change(update.rows);
  co_return Result<void>();
}

task::Task<Result<void>> ParityLog::commit(ParityUpdate& update, Waiter& waiter) {
  Result<void> done = co_await carry_out(update, Step::kLog, waiter);
  if (done) done = co_await carry_out(update, Step::kPlace, waiter);
  if (update.is_stuck) --stuck_;
  co_return done;
}

// Done when every leg that is not lost has taken the step, and labels call those lost that are. It
// is not to be stopped half way: when too many legs fail the request is told so, and the update
// waits for them.
task::Task<Result<void>> ParityLog::carry_out(ParityUpdate& update, Step step, Waiter& waiter) {
  const LegSet good = update.legs & legs_.in(ParityLegs::State::kGood);
  LegSet done = 0;
  Result<void> result;
  for (;;) {
    LegSet pending = update.legs & legs_.in(ParityLegs::State::kGood);
    if (step == Step::kPlace) pending |= update.legs & legs_.in(ParityLegs::State::kCopying);
    pending &= ~done;
    if (pending == 0 && legs_.labels().are_saved()) break;
    ParityOutcome outcome;
    Join join;
    for (size_t leg = 0; leg < legs_.size(); ++leg) {
      if ((pending >> leg & 1) == 0) continue;
      join.add();
      if (step == Step::kLog) {
        context_.gate.spawn(log_on(leg, update, good, outcome, join));
      } else {
        context_.gate.spawn(legs_.place_on(leg, update, outcome, join));
      }
    }
    const Result<void> all = co_await join.all();
    (void)all;  // judged leg by leg
    done |= outcome.done;
    result = co_await legs_.judge(outcome);
    if (result) result = co_await legs_.labels().save();
    if (result) continue;
    const bool is_out_of_buffers = result.error() == Errc::kLimit;
    if (!is_out_of_buffers && !update.is_stuck) {
      update.is_stuck = true;
      ++stuck_;
      update.units.release();
      waiter.update_is_stuck(result);
      context_.env.trace().record("parity.stuck", update.rows.first, update.rows.count);
    }
    const Duration pause = is_out_of_buffers ? kBufferRetry : context_.retry;
    const Result<void> slept = co_await task::sleep_for(context_.env, pause, context_.closing);
    if (!slept) {
      is_broken_ = true;
      break;
    }
  }
  co_return result;
}

task::Task<void> ParityLog::log_on(size_t leg, ParityUpdate& update, LegSet legs,
                                   ParityOutcome& outcome, Join& join) {
  Result<Scratch> header = Scratch::make(context_.env, context_.shape.block_size);
  if (!header) {
    outcome.other = fail(header.error());
    co_return join.finish(outcome.other);
  }
  const ParityEntry entry{.epoch = epoch_.number(),
                          .position = update.position,
                          .first_row = update.rows.first,
                          .rows = update.rows.count,
                          .legs = legs,
                          .is_zeroes = update.is_zeroes(),
                          .content_crc = crc32c(update.content[leg].bytes())};
  encode_parity_entry(entry, legs_.label(), header->bytes());
  const MutableBytes pieces[] = {header->bytes(), update.content[leg].bytes()};
  const ParityLegs::Memory memory = std::span(pieces).first(update.is_zeroes() ? 1 : 2);
  Request request{.kind = Request::Kind::kWrite,
                  .durable = true,
                  .metadata = true,
                  .priority = update.priority,
                  .lba = Lba(context_.shape.log_offset + update.position),
                  .blocks = entry.blocks()};
  if (entry.blocks() <= legs_[leg].drive->geometry().transfer_blocks) {
    co_return co_await legs_.submit_to(leg, request, memory, outcome, join);
  }
  // Content without its header is no entry, nor is a header without its content.
  request.lba = Lba(request.lba.value() + 1);
  request.blocks = update.rows.count;
  const Result<void> done = co_await legs_[leg].drive->submit(request, memory.last(1));
  if (!done) {
    ParityLegs::note(leg, done, outcome);
    co_return join.finish(done);
  }
  request.lba = Lba(request.lba.value() - 1);
  request.blocks = 1;
  co_await legs_.submit_to(leg, request, memory.first(1), outcome, join);
}

// Makes room for so many blocks in the log, unless somebody else did meanwhile.
task::Task<Result<void>> ParityLog::make_space(uint64_t room, task::CancelToken token) {
  const Result<void> got = co_await units_.acquire(kUnits, token);
  if (!got) co_return got;
  const task::Units all(units_, kUnits);
  if (is_stuck()) co_return stuck();
  if (head_ + room <= context_.shape.log_blocks) co_return Result<void>();
  co_return co_await checkpoint();
}

task::Task<Result<void>> ParityLog::checkpoint() {
  head_ = context_.shape.log_blocks;
  const uint64_t doubts = legs_.doubts();
  Result<void> done;
  if (must_replay_) {
    done = co_await legs_.check_claim();
    if (done) done = co_await replay();
    if (!done) co_return done;
    must_replay_ = false;
  }
  const ParityOutcome flushed = co_await legs_.submit_to_all({.kind = Request::Kind::kFlush}, {});
  done = co_await legs_.judge(flushed);
  legs_.look();
  if (done && doubts != legs_.doubts()) done = fail(Errc::kIo, "legs were restarted meanwhile");
  // A leg that failed its flush and stays may have forgotten what is in place.
  must_replay_ = !done.has_value();
  if (done) legs_.clear_doubts();
  if (done) done = co_await legs_.labels().save();
  if (done) done = co_await epoch_.end();
  if (done) head_ = 0;
  co_return done;
}

task::Task<Result<void>> ParityLog::replay() {
  ParityReplay replay(context_, legs_, epoch_);
  const Result<void> done = co_await replay.run();
  co_return done;
}

void ParityLog::recover() {
  must_replay_ = true;
  recovery_tried_.reset();
  if (recovery_runs_) return;
  // Nobody waits for what does not come.
  if (context_.closing.requested()) return recovery_tried_.set();
  recovery_runs_ = true;
  context_.gate.spawn(run_recovery());
}

// Too many legs may have forgotten what was put into place: it is put there again from their logs.
task::Task<void> ParityLog::run_recovery() {
  while (legs_.doubtful() != 0 && !context_.closing.requested()) {
    Result<void> done = co_await units_.acquire(kUnits, context_.closing);
    if (!done) break;
    task::Units all(units_, kUnits);
    if (is_stuck()) {
      done = fail(Errc::kIo, "a leg does not answer");
    } else {
      done = co_await checkpoint();
    }
    all.release();
    context_.env.trace().record("parity.replayed", legs_.doubtful(), done.has_value() ? 1 : 0);
    recovery_tried_.set();
    if (done) continue;
    const Result<void> slept =
        co_await task::sleep_for(context_.env, context_.retry, context_.closing);
    if (!slept) break;
  }
  recovery_tried_.set();
  recovery_runs_ = false;
}

task::Task<void> ParityLog::close() {
  const Result<task::Units> all = co_await stop_updates({});
  CHECK(all.has_value());
  if (!is_stuck() && head_ > 0) {
    const Result<void> emptied = co_await checkpoint();
    (void)emptied;  // if not, the next start carries out what the log holds
  }
}

}  // namespace cairn::drive
