// SPDX-License-Identifier: Apache-2.0
// The log of parity: how an update reaches legs so that no crash leaves half of it.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "service/raid/parity_drive.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kUnitBytes = 4096;
constexpr Duration kBufferRetry = 1_ms;  // when buffers of a drive below are all out

}  // namespace

// An update has at most twice a buffer per leg: what was there, and what comes.
uint64_t ParityDrive::units_of(uint64_t rows) const {
  const uint64_t bytes = std::min(rows, slice_) * geometry_.block_size * legs_.size() * 2;
  return std::clamp<uint64_t>(bytes / kUnitBytes, 1, kUnits);
}

// A place in the log and in memory. Whoever calls it has the rows, so that entries about the same
// rows are in the log in the order of the changes.
task::Task<Result<void>> ParityDrive::admit(Update& update, task::CancelToken token) {
  const uint64_t wanted = units_of(update.rows.count);
  const uint64_t room = update.is_zeroes() ? 1 : 1 + update.rows.count;
  for (;;) {
    const Result<void> got = co_await units_.acquire(wanted, token);
    if (!got) co_return got;
    update.units = task::Units(units_, wanted);
    if (claim_.is_due()) {
      const Result<void> owned = co_await claim_.check(label().generation, token);
      if (!owned) co_return owned;
    }
    if (is_broken_ || stuck_ > 0) {
      co_return fail(Errc::kIo, "more legs fail than parity can replace");
    }
    if (log_head_ + room <= label().log_blocks) break;
    update.units.release();
    const Result<void> emptied = co_await checkpoint(room, token);
    if (!emptied) co_return emptied;
  }
  update.position = log_head_;
  log_head_ += room;
  note_missed(update.rows);
  co_return Result<void>();
}

task::Task<Result<void>> ParityDrive::commit(Update& update, Change& change) {
  Result<void> done = co_await carry_out(update, Step::kLog, change);
  if (done) done = co_await carry_out(update, Step::kPlace, change);
  if (update.is_stuck) --stuck_;
  co_return done;
}

// Done when every leg that is not lost has taken the step, and labels call those lost that are. It
// is not to be stopped half way: when too many legs fail the request is told so, and the update
// waits for them.
task::Task<Result<void>> ParityDrive::carry_out(Update& update, Step step, Change& change) {
  const LegSet good = update.legs & legs_in(State::kGood);
  LegSet done = 0;
  Result<void> result;
  for (;;) {
    LegSet pending = update.legs & legs_in(State::kGood);
    if (step == Step::kPlace) pending |= update.legs & legs_in(State::kCopying);
    pending &= ~done;
    if (pending == 0 && labels_.are_saved()) break;
    Outcome outcome;
    Join join;
    for (size_t leg = 0; leg < legs_.size(); ++leg) {
      if ((pending >> leg & 1) == 0) continue;
      join.add();
      if (step == Step::kLog) {
        gate().spawn(log_on(leg, update, good, outcome, join));
      } else {
        gate().spawn(place_on(leg, update, outcome, join));
      }
    }
    const Result<void> all = co_await join.all();
    (void)all;  // judged leg by leg
    done |= outcome.done;
    result = co_await judge(outcome);
    if (result) result = co_await labels_.save();
    if (result) continue;
    const bool is_out_of_buffers = result.error() == Errc::kLimit;
    if (!is_out_of_buffers && !update.is_stuck) {
      update.is_stuck = true;
      ++stuck_;
      update.units.release();
      if (change.waiting != nullptr) ++leftover_;
      report(change, result);
      env_.trace().record("parity.stuck", update.rows.first, update.rows.count);
    }
    const Duration pause = is_out_of_buffers ? kBufferRetry : options_.retry;
    const Result<void> slept = co_await task::sleep_for(env_, pause, closing_.token());
    if (!slept) {
      is_broken_ = true;
      break;
    }
  }
  co_return result;
}

task::Task<void> ParityDrive::log_on(size_t leg, Update& update, LegSet legs, Outcome& outcome,
                                     Join& join) {
  Result<Scratch> header = Scratch::make(env_, geometry_.block_size);
  if (!header) {
    outcome.other = fail(header.error());
    co_return join.finish(outcome.other);
  }
  const ParityEntry entry{.epoch = epoch_,
                          .position = update.position,
                          .first_row = update.rows.first,
                          .rows = update.rows.count,
                          .legs = legs,
                          .is_zeroes = update.is_zeroes(),
                          .content_crc = crc32c(update.content[leg].bytes())};
  encode_parity_entry(entry, label(), header->bytes());
  const MutableBytes pieces[] = {header->bytes(), update.content[leg].bytes()};
  const Memory memory = std::span(pieces).first(update.is_zeroes() ? 1 : 2);
  Request request{.kind = Request::Kind::kWrite,
                  .durable = true,
                  .metadata = true,
                  .priority = update.priority,
                  .lba = Lba(label().log_offset() + update.position),
                  .blocks = entry.blocks()};
  if (entry.blocks() <= legs_[leg].drive->geometry().transfer_blocks) {
    co_return co_await submit_to(leg, request, memory, outcome, join);
  }
  // Content without its header is no entry, nor is a header without its content.
  request.lba = Lba(request.lba.value() + 1);
  request.blocks = update.rows.count;
  const Result<void> done = co_await legs_[leg].drive->submit(request, memory.last(1));
  if (!done) {
    note(leg, done, outcome);
    co_return join.finish(done);
  }
  request.lba = Lba(request.lba.value() - 1);
  request.blocks = 1;
  co_await submit_to(leg, request, memory.first(1), outcome, join);
}

task::Task<void> ParityDrive::place_on(size_t leg, Update& update, Outcome& outcome, Join& join) {
  const Request request{.kind = update.kind,
                        .keep_space = update.keep_space,
                        .priority = update.priority,
                        .lba = Lba(label().data_offset() + update.rows.first),
                        .blocks = update.rows.count};
  if (update.is_zeroes()) co_return co_await zero_on(leg, request, outcome, join);
  const MutableBytes piece = update.content[leg].bytes();
  co_await submit_to(leg, request, {&piece, 1}, outcome, join);
}

// A drive that cannot discard may write zeroes, and any can write.
task::Task<void> ParityDrive::zero_on(size_t leg, Request request, Outcome& outcome, Join& join) {
  Drive& drive = *legs_[leg].drive;
  Result<void> done = co_await drive.submit(request, {});
  const auto is_unsupported = [&done] { return !done && done.error() == Errc::kUnsupported; };
  if (is_unsupported() && request.kind == Request::Kind::kDiscard) {
    request.kind = Request::Kind::kWriteZeroes;
    done = co_await drive.submit(request, {});
  }
  if (is_unsupported()) {
    Scratch zeroes;
    done = make_room(zeroes, slice_);
    if (done) std::ranges::fill(zeroes.bytes(), std::byte{0});
    const uint64_t end = request.lba.value() + request.blocks;
    for (uint64_t at = request.lba.value(); done && at < end; at += slice_) {
      const uint64_t bytes = std::min(slice_, end - at) * geometry_.block_size;
      done = co_await drive.write(Lba(at), zeroes.first(bytes));
    }
  }
  note(leg, done, outcome);
  join.finish(done);
}

// Makes room for so many blocks in the log, unless somebody else did meanwhile.
task::Task<Result<void>> ParityDrive::checkpoint(uint64_t room, task::CancelToken token) {
  const Result<void> got = co_await units_.acquire(kUnits, token);
  if (!got) co_return got;
  const task::Units all(units_, kUnits);
  if (is_broken_ || stuck_ > 0) {
    co_return fail(Errc::kIo, "more legs fail than parity can replace");
  }
  if (log_head_ + room <= label().log_blocks) co_return Result<void>();
  co_return co_await checkpoint_alone();
}

// What is in place becomes durable; then a new epoch ends the entries of the log. Whoever calls it
// has all units. After a failure the log takes no entries until it succeeds.
task::Task<Result<void>> ParityDrive::checkpoint_alone() {
  log_head_ = label().log_blocks;
  const uint64_t doubts = doubts_;
  Result<void> done;
  if (must_replay_) {
    done = co_await claim_.check(label().generation);
    if (done) done = co_await replay();
    if (!done) co_return done;
    must_replay_ = false;
  }
  const Outcome flushed = co_await submit_to_all({.kind = Request::Kind::kFlush}, {});
  done = co_await judge(flushed);
  look_at_legs();
  if (done && doubts != doubts_) done = fail(Errc::kIo, "legs were restarted meanwhile");
  // A leg that failed its flush and stays may have forgotten what is in place.
  must_replay_ = !done.has_value();
  if (done) doubtful_ = 0;
  if (done) done = co_await labels_.save();
  if (done) done = co_await save_state(epoch_ + 1);
  if (!done) co_return done;
  ++epoch_;
  log_head_ = 0;
  touched_ = RegionSet(touched_.size());
  co_return done;
}

// Durable on every good leg. One that fails is written again in the same place: the other block has
// the state that is in force.
task::Task<Result<void>> ParityDrive::save_state(uint64_t epoch) {
  const Result<void> written = co_await write_state(epoch, state_sequence_ + 1);
  if (written) ++state_sequence_;
  co_return written;
}

// A leg that is dropped meanwhile has missed more than was written.
task::Task<Result<void>> ParityDrive::write_state(uint64_t epoch, uint64_t sequence) {
  const Result<void> owned = co_await claim_.check(label().generation);
  if (!owned) co_return owned;
  const MutableBytes piece = state_block_.bytes();
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = true,
                        .metadata = true,
                        .lba = Lba(parity_state_block(sequence)),
                        .blocks = 1};
  for (;;) {
    encode_parity_state({.epoch = epoch, .missed = missed_, .sequence = sequence}, label(), piece);
    const Outcome outcome = co_await submit_to_all(request, {&piece, 1});
    if (outcome.failed == 0 && outcome.other) co_return Result<void>();
    const Result<void> judged = co_await judge(outcome);
    if (!judged) co_return judged;
  }
}

task::Task<Result<LegsClaim::Seen>> ParityDrive::look_at_label(size_t leg,
                                                               task::CancelToken token) {
  const Result<std::optional<Label>> found =
      co_await read_label(env_, *legs_[leg].drive, kParityLabel, token);
  if (!found) co_return fail(found.error());
  if (!*found) co_return LegsClaim::Seen{};
  co_return LegsClaim::Seen{
      .is_others = (*found)->id == label().id && (*found)->writer != label().writer,
      .generation = (*found)->generation};
}

void ParityDrive::leg_is_silent(size_t leg) {
  const bool dropped = drop(leg);
  (void)dropped;  // if not, it is waited for
}

// Whoever had the legs may have gone on until they were claimed.
task::Task<Result<void>> ParityDrive::check_state() {
  for (Leg& leg : legs_) {
    if (leg.state != State::kGood) continue;
    for (uint64_t slot = 0; slot < 2; ++slot) {
      const Result<void> read =
          co_await leg.drive->read(Lba(parity_state_block(slot)), state_block_.bytes());
      if (!read) continue;
      const Result<ParityState> state = decode_parity_state(label(), state_block_.bytes());
      if (state && state->sequence > state_sequence_) co_return fail(changed_meanwhile());
    }
  }
  co_return Result<void>();
}

}  // namespace cairn::drive
