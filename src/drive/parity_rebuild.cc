// SPDX-License-Identifier: Apache-2.0
// What parity does by itself: gives legs what they lack, takes legs back, uses spares.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "drive/leg_search.h"
#include "drive/parity_drive.h"
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
  const uint64_t end = std::min(label_.rows, (region + 1) * region_rows_);
  for (uint64_t row = region * region_rows_; row < end;) {
    const RowSpan rows = slice_at(row, end);
    const Result<void> may =
        co_await pace_.take(rows.count * geometry_.block_size, closing_.token());
    if (!may) co_return false;
    const bool copied = co_await copy_rows(rows);
    if (!copied) co_return false;
    row = rows.end();
  }
  co_return true;
}

// Computes from good legs what those that are copied to should hold, while nobody changes it.
task::Task<bool> ParityDrive::copy_rows(RowSpan rows) {
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, rows.first, rows.count, closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return false;
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
  std::array<MutableBytes, kSymbolsMax> pieces;
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    const size_t leg = layout_.leg_of(rows.first, symbol);
    if ((targets >> symbol & 1) == 0 || legs_[leg].state != State::kCopying) continue;
    pieces[symbol] = symbols[symbol].bytes();
    const Request request{.kind = Request::Kind::kWrite,
                          .priority = Priority::kLow,
                          .lba = Lba(label_.data_offset() + rows.first),
                          .blocks = rows.count};
    join.add();
    gate().spawn(submit_to(leg, request, {&pieces[symbol], 1}, outcome, join));
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
    ++label_changes_;
  }
  done = co_await save_label();
  if (!done || !is_whole()) co_return done;
  missed_ = RegionSet(missed_.size());
  co_return co_await save_state(epoch_);
}

// A lost leg that answers, and is who it was, gets what it missed.
task::Task<bool> ParityDrive::revive(size_t index) {
  const Result<void> saved = co_await save_label();
  if (!saved) co_return false;
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<ParityLabel> found =
      co_await read_parity_label(env_, *legs_[index].drive, deadline.token());
  if (!found) co_return false;
  const Result<void> got = co_await units_.acquire(kUnits, closing_.token());
  if (!got) co_return false;
  const task::Units all(units_, kUnits);
  Leg& leg = legs_[index];
  if (leg.state != State::kLost || stuck_ > 0 || is_broken_ || labels_saved_ != label_changes_ ||
      found->id != label_.id || found->own_member().id != leg.id) {
    co_return false;
  }
  const LegVerdict verdict = judge_leg({.newest_generation = label_.generation,
                                        .stale_from = leg.stale_from,
                                        .own_generation = found->generation,
                                        .own_stale_from = found->own_member().stale_from});
  if (verdict != LegVerdict::kStale) co_return false;
  leg.state = State::kCopying;
  lacking_.add(missed_);
  copy_again_ = true;
  env_.trace().record("parity.leg_back", index, label_.generation);
  co_await bring_up_to_date(index);
  if (legs_[index].state == State::kLost) co_return false;
  wake_copier();
  co_return true;
}

// Those above know what the legs that were there take at a time, which must not get less.
task::Task<Newcomer> ParityDrive::meet(std::unique_ptr<Drive>& drive) {
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<ParityLabel> found =
      co_await judge_label(env_, *drive, {}, read_parity_label, deadline.token());
  if (drive->geometry().transfer_blocks < geometry_.transfer_blocks) {
    co_return Newcomer::kForeign;
  }
  co_return take_in(drive, found, label_, legs_);
}

// A spare takes the place of a lost leg. First every region is missed, durably: a crash after the
// label names the new leg must find that it lacks all.
task::Task<void> ParityDrive::replace(size_t index) {
  const Result<void> got = co_await units_.acquire(kUnits, closing_.token());
  if (!got) co_return;
  const task::Units all(units_, kUnits);
  if (is_broken_ || stuck_ > 0) co_return;
  missed_.add_all();
  const Result<void> noted = co_await save_state(epoch_);
  if (!noted || legs_[index].state != State::kLost || legs_.spares.empty()) co_return;
  legs_.use_spare(index, env_.rng().next() | 1);
  ++label_changes_;
  lacking_.add_all();
  copy_again_ = true;
  env_.trace().record("parity.spare_used", index, label_.generation);
  const Result<void> saved = co_await save_label();
  (void)saved;  // it is tried again before the next change completes
  wake_copier();
}

}  // namespace cairn::drive
