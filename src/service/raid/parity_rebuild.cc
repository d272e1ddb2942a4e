// SPDX-License-Identifier: Apache-2.0
// What parity does by itself: gives legs what they lack, takes legs back, uses spares.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "drive/copy_blocks.h"
#include "service/raid/leg_search.h"
#include "service/raid/parity_drive.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr Duration kReviveTimeout = 5_s;  // for a lost leg's label

}  // namespace

void ParityDrive::wake_copier() {
  if (copier_runs_ || closing_.requested() || count(State::kCopying) == 0) return;
  copier_runs_ = true;
  gate().spawn(copy_all());
}

task::Task<void> ParityDrive::copy_all() {
  while (!closing_.requested() && count(State::kCopying) > 0) {
    bool is_well = true;
    if (lacking_.empty()) {
      const Result<void> finished = co_await finish_copying();
      is_well = finished.has_value();
    } else {
      size_t region = lacking_.next(copied_region_);
      if (region == lacking_.size()) region = lacking_.next(0);
      copied_region_ = region;
      copy_again_ = false;
      is_well = co_await copy_region(region);
      if (is_well && !copy_again_) lacking_.remove(region);
      ++copied_region_;
    }
    if (is_well) continue;
    const Result<void> slept = co_await task::sleep_for(env_, options_.retry, closing_.token());
    if (!slept) break;
  }
  if (count(State::kCopying) == 0) lacking_ = RegionSet(lacking_.size());
  copier_runs_ = false;
}

task::Task<bool> ParityDrive::copy_region(size_t region) {
  const uint64_t end = std::min(label().rows, (region + 1) * region_rows_);
  if (claim_.is_due()) {
    const Result<void> owned = co_await claim_.check(label().generation);
    if (!owned) co_return false;
  }
  for (uint64_t row = region * region_rows_; row < end;) {
    const uint64_t copied = co_await copy_rows({row, end - row});
    if (copied == 0) co_return false;
    row += copied;
  }
  co_return true;
}

// How many rows from the first on are holes of all good legs: all else there is zeroes then.
uint64_t ParityDrive::hole_rows(RowSpan rows) const {
  uint64_t holes = rows.count;
  for (const Leg& leg : legs_) {
    if (leg.state != State::kGood || holes == 0) continue;
    holes = holes_at(*leg.drive, label().data_offset() + rows.first, holes);
  }
  return holes;
}

// The first of these rows, to legs that are copied to, while nobody changes them: how many, 0 on
// failure.
task::Task<uint64_t> ParityDrive::copy_rows(RowSpan rows) {
  const RowSpan slice = slice_at(rows.first, rows.end());
  rows.count = hole_rows(rows);
  if (rows.count == 0) {
    rows = slice;
    const Result<void> may =
        co_await pace_.take(rows.count * geometry_.block_size, closing_.token());
    if (!may) co_return 0;
  }
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, rows.first, rows.count, closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return 0;
  bool copied = false;
  if (hole_rows(rows) == rows.count) {
    copied = co_await zero_rows(rows);
  } else {
    rows.count = std::min(rows.count, slice.count);
    copied = co_await make_rows(rows);
  }
  co_return copied ? rows.count : 0;
}

task::Task<bool> ParityDrive::zero_rows(RowSpan rows) {
  const Request request{.kind = Request::Kind::kWriteZeroes,
                        .priority = Priority::kLow,
                        .lba = Lba(label().data_offset() + rows.first),
                        .blocks = rows.count};
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (legs_[leg].state != State::kCopying ||
        holes_at(*legs_[leg].drive, request.lba.value(), rows.count) == rows.count) {
      continue;
    }
    join.add();
    gate().spawn(copy_to(leg, request, {}, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  const Result<void> judged = co_await judge(outcome);
  co_return judged.has_value();
}

// Without content the blocks are holes.
task::Task<void> ParityDrive::copy_to(size_t leg, Request request, MutableBytes content,
                                      Outcome& outcome, Join& join) {
  Drive& drive = *legs_[leg].drive;
  Result<void> done;
  if (content.empty()) {
    done = co_await write_holes(env_, drive, request);
  } else {
    done = co_await write_copy(drive, request, content);
  }
  note(leg, done, outcome);
  join.finish(done);
}

// Computes from good legs what those that are copied to should hold.
task::Task<bool> ParityDrive::make_rows(RowSpan rows) {
  Buffers symbols;
  const Result<SymbolSet> sources = co_await read_word(rows, 0, symbols, closing_.token());
  if (!sources) co_return false;
  const SymbolSet targets = symbols_on(rows.first, legs_in(State::kCopying));
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    if ((targets >> symbol & 1) != 0 && !make_room(symbols[symbol], rows.count)) co_return false;
  }
  code_.make(*sources, targets & ~*sources, pointers(symbols), rows.count * geometry_.block_size);
  Outcome outcome;
  Join join;
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    const size_t leg = layout_.leg_of(rows.first, symbol);
    if ((targets >> symbol & 1) == 0 || legs_[leg].state != State::kCopying) continue;
    const Request request{.kind = Request::Kind::kWrite,
                          .priority = Priority::kLow,
                          .lba = Lba(label().data_offset() + rows.first),
                          .blocks = rows.count};
    join.add();
    const MutableBytes content = symbols[symbol].bytes();
    gate().spawn(copy_to(leg, request, content, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  const Result<void> judged = co_await judge(outcome);
  co_return judged.has_value();
}

// Nothing is lacking: legs that were copied to have all data, once nobody is in the middle of an
// update that did not count on their logs.
task::Task<Result<void>> ParityDrive::finish_copying() {
  const Result<void> got = co_await units_.acquire(kUnits, closing_.token());
  if (!got) co_return got;
  const task::Units all(units_, kUnits);
  if (is_broken_ || stuck_ > 0) co_return fail(Errc::kIo, "a leg does not answer");
  if (!lacking_.empty() || count(State::kCopying) == 0) co_return Result<void>();
  co_return co_await make_good();
}

task::Task<Result<void>> ParityDrive::make_good() {
  Result<void> done = co_await checkpoint_alone();
  if (!done || !lacking_.empty()) co_return done;
  for (Leg& leg : legs_) {
    if (leg.state != State::kCopying) continue;
    leg.state = State::kGood;
    leg.stale_from = 0;
    labels_.note_change();
  }
  done = co_await labels_.save();
  if (!done || !is_whole()) co_return done;
  missed_ = RegionSet(missed_.size());
  co_return co_await save_state(epoch_);
}

// A lost leg that answers, and is who it was, gets what it missed.
task::Task<bool> ParityDrive::revive(size_t index) {
  const Result<void> saved = co_await labels_.save();
  if (!saved) co_return false;
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<ParityLabel> found =
      co_await read_parity_label(env_, *legs_[index].drive, deadline.token());
  const bool is_own = found && found->id == label().id && found->own_member().id == legs_[index].id;
  const bool is_unknown = !found && found.error() == Errc::kNotFound;
  // Of a leg on several drives only one may be new: a label alone proves nothing.
  if (legs_[index].is_replaced && (is_own || is_unknown)) {
    if (!fits(legs_[index].drive->geometry())) co_return false;
    if (is_unknown) {
      const Result<void> blank = co_await check_blank(
          env_, *legs_[index].drive, static_cast<int32_t>(index + 1), deadline.token());
      if (!blank) co_return false;
    }
    co_return co_await fill_anew(index, false);
  }
  if (!is_own) co_return false;
  const Result<void> got = co_await units_.acquire(kUnits, closing_.token());
  if (!got) co_return false;
  const task::Units all(units_, kUnits);
  Leg& leg = legs_[index];
  if (leg.state != State::kLost || stuck_ > 0 || is_broken_ || !labels_.are_saved()) {
    co_return false;
  }
  const LegVerdict verdict = judge_leg({.newest_generation = label().generation,
                                        .stale_from = leg.stale_from,
                                        .own_generation = found->generation,
                                        .own_stale_from = found->own_member().stale_from});
  if (verdict != LegVerdict::kStale) co_return false;
  leg.state = State::kCopying;
  lacking_.add(missed_);
  copy_again_ = true;
  env_.trace().record("parity.leg_back", index, label().generation);
  co_await bring_up_to_date(index);
  if (legs_[index].state == State::kLost) co_return false;
  wake_copier();
  co_return true;
}

// Those above know what the legs that were there take at a time, which must not get less.
bool ParityDrive::fits(const Geometry& shape) const {
  return shape.block_size == label().block_size && shape.blocks >= label().leg_blocks() &&
         shape.transfer_blocks >= geometry_.transfer_blocks;
}

task::Task<Newcomer> ParityDrive::meet(std::unique_ptr<Drive>& drive) {
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<ParityLabel> found =
      co_await judge_label(env_, *drive, {}, read_parity_label, deadline.token());
  if (!fits(drive->geometry())) co_return Newcomer::kForeign;
  co_return take_in(drive, found, label(), options_.moved, legs_);
}

task::Task<void> ParityDrive::replace(size_t index) {
  const bool filled = co_await fill_anew(index, true);
  (void)filled;  // if not, it is tried again
}

// First every region is missed, durably: a crash after the label names the new leg must find that
// it lacks all.
task::Task<bool> ParityDrive::fill_anew(size_t index, bool by_spare) {
  const Result<void> got = co_await units_.acquire(kUnits, closing_.token());
  if (!got) co_return false;
  const task::Units all(units_, kUnits);
  if (is_broken_ || stuck_ > 0) co_return false;
  missed_.add_all();
  const Result<void> noted = co_await save_state(epoch_);
  if (!noted || legs_[index].state != State::kLost) co_return false;
  if (by_spare ? legs_.spares.empty() : legs_[index].has_changed()) co_return false;
  const uint64_t id = env_.rng().next() | 1;
  if (by_spare) {
    legs_.use_spare(index, id);
  } else {
    legs_.begin_anew(index, id);
  }
  labels_.note_change();
  lacking_.add_all();
  copy_again_ = true;
  env_.trace().record(by_spare ? "parity.spare_used" : "parity.leg_anew", index,
                      label().generation);
  const Result<void> saved = co_await labels_.save();
  (void)saved;  // it is tried again before the next change completes
  wake_copier();
  co_return true;
}

void ParityDrive::wake_recovery() {
  if (recovery_runs_) return;
  // Nobody waits for what does not come.
  if (closing_.requested()) return recovery_tried_.set();
  recovery_runs_ = true;
  gate().spawn(recover());
}

// Too many legs may have forgotten what was put into place: it is put there again from their logs.
task::Task<void> ParityDrive::recover() {
  while (doubtful_ != 0 && !closing_.requested()) {
    Result<void> done = co_await units_.acquire(kUnits, closing_.token());
    if (!done) break;
    task::Units all(units_, kUnits);
    if (is_broken_ || stuck_ > 0) {
      done = fail(Errc::kIo, "a leg does not answer");
    } else {
      done = co_await checkpoint_alone();
    }
    all.release();
    env_.trace().record("parity.replayed", doubtful_, done.has_value() ? 1 : 0);
    recovery_tried_.set();
    if (done) continue;
    const Result<void> slept = co_await task::sleep_for(env_, options_.retry, closing_.token());
    if (!slept) break;
  }
  recovery_tried_.set();
  recovery_runs_ = false;
}

}  // namespace cairn::drive
