// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_copier.h"

#include <algorithm>
#include <utility>

#include "drive/copy_blocks.h"
#include "task/deadline.h"

namespace cairn::drive {

ParityCopier::ParityCopier(const ParityContext& context, ParityLegs& legs, ParityEpoch& epoch,
                           ParityLog& log, ParityRows& rows, Pace& pace)
    : context_(context),
      legs_(legs),
      epoch_(epoch),
      log_(log),
      rows_(rows),
      pace_(pace),
      lacking_(context.shape.regions) {}

void ParityCopier::add(const RegionSet& regions) {
  lacking_.add(regions);
  copy_again_ = true;
}

void ParityCopier::add_all() {
  lacking_.add_all();
  copy_again_ = true;
}

void ParityCopier::wake() {
  if (runs_ || context_.closing.requested()) return;
  if (legs_.count(ParityLegs::State::kCopying) == 0) return;
  runs_ = true;
  context_.gate.spawn(copy_all());
}

task::Task<void> ParityCopier::copy_all() {
  while (!context_.closing.requested() && legs_.count(ParityLegs::State::kCopying) > 0) {
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
    const Result<void> slept =
        co_await task::sleep_for(context_.env, context_.retry, context_.closing);
    if (!slept) break;
  }
  if (legs_.count(ParityLegs::State::kCopying) == 0) lacking_ = RegionSet(lacking_.size());
  runs_ = false;
}

task::Task<bool> ParityCopier::copy_region(size_t region) {
  const uint64_t end = std::min(context_.shape.rows, (region + 1) * context_.shape.region_rows);
  if (legs_.claim().is_due()) {
    const Result<void> owned = co_await legs_.check_claim();
    if (!owned) co_return false;
  }
  for (uint64_t row = region * context_.shape.region_rows; row < end;) {
    const uint64_t copied = co_await copy_rows({row, end - row});
    if (copied == 0) co_return false;
    row += copied;
  }
  co_return true;
}

// How many rows from the first on are holes of all good legs: all else there is zeroes then.
uint64_t ParityCopier::hole_rows(RowSpan rows) const {
  uint64_t holes = rows.count;
  for (const Leg& leg : legs_.all()) {
    if (leg.state != ParityLegs::State::kGood || holes == 0) continue;
    holes = holes_at(*leg.drive, context_.shape.data_offset + rows.first, holes);
  }
  return holes;
}

// The first of these rows, to legs that are copied to, while nobody changes them: how many, 0 on
// failure.
task::Task<uint64_t> ParityCopier::copy_rows(RowSpan rows) {
  const RowSpan slice = context_.shape.slice_at(rows.first, rows.end());
  rows.count = hole_rows(rows);
  if (rows.count == 0) {
    rows = slice;
    const Result<void> may =
        co_await pace_.take(rows.count * context_.shape.block_size, context_.closing);
    if (!may) co_return 0;
  }
  Ranges::Hold hold(rows_.ranges(), Ranges::Mode::kExclusive, rows.first, rows.count,
                    context_.closing);
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

task::Task<bool> ParityCopier::zero_rows(RowSpan rows) {
  const Request request{.kind = Request::Kind::kWriteZeroes,
                        .priority = Priority::kLow,
                        .lba = context_.shape.lba(rows.first),
                        .blocks = rows.count};
  ParityOutcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (legs_[leg].state != ParityLegs::State::kCopying ||
        holes_at(*legs_[leg].drive, request.lba.value(), rows.count) == rows.count) {
      continue;
    }
    join.add();
    context_.gate.spawn(copy_to(leg, request, {}, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  const Result<void> judged = co_await legs_.judge(outcome);
  co_return judged.has_value();
}

// Without content the blocks are holes.
task::Task<void> ParityCopier::copy_to(size_t leg, Request request, MutableBytes content,
                                       ParityOutcome& outcome, Join& join) {
  Drive& drive = *legs_[leg].drive;
  Result<void> done;
  if (content.empty()) {
    done = co_await write_holes(context_.env, drive, request);
  } else {
    done = co_await write_copy(drive, request, content);
  }
  ParityLegs::note(leg, done, outcome);
  join.finish(done);
}

// Computes from good legs what those that are copied to should hold.
task::Task<bool> ParityCopier::make_rows(RowSpan rows) {
  ParityBuffers symbols;
  const Result<SymbolSet> sources = co_await rows_.read_word(rows, 0, symbols, context_.closing);
  if (!sources) co_return false;
  const SymbolSet targets = legs_.symbols_on(rows.first, legs_.in(ParityLegs::State::kCopying));
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    if ((targets >> symbol & 1) == 0) continue;
    if (!rows_.make_room(symbols[symbol], rows.count)) co_return false;
  }
  rows_.compute(*sources, targets & ~*sources, symbols, rows.count * context_.shape.block_size);
  ParityOutcome outcome;
  Join join;
  for (size_t symbol = 0; symbol < context_.shape.layout.legs; ++symbol) {
    const size_t leg = context_.shape.layout.leg_of(rows.first, symbol);
    if ((targets >> symbol & 1) == 0 || legs_[leg].state != ParityLegs::State::kCopying) continue;
    const Request request{.kind = Request::Kind::kWrite,
                          .priority = Priority::kLow,
                          .lba = context_.shape.lba(rows.first),
                          .blocks = rows.count};
    join.add();
    const MutableBytes content = symbols[symbol].bytes();
    context_.gate.spawn(copy_to(leg, request, content, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  const Result<void> judged = co_await legs_.judge(outcome);
  co_return judged.has_value();
}

// Nothing is lacking: legs that were copied to have all data, once nobody is in the middle of an
// update that did not count on their logs.
task::Task<Result<void>> ParityCopier::finish_copying() {
  const Result<task::Units> all = co_await log_.stop_updates(context_.closing);
  if (!all) co_return fail(all.error());
  if (log_.is_stuck()) co_return fail(Errc::kIo, "a leg does not answer");
  if (!lacking_.empty() || legs_.count(ParityLegs::State::kCopying) == 0) co_return Result<void>();
  co_return co_await make_good();
}

task::Task<Result<void>> ParityCopier::make_good() {
  Result<void> done = co_await log_.checkpoint();
  if (!done || !lacking_.empty()) co_return done;
  for (Leg& leg : legs_.all()) {
    if (leg.state != ParityLegs::State::kCopying) continue;
    leg.state = ParityLegs::State::kGood;
    leg.stale_from = 0;
    legs_.labels().note_change();
  }
  done = co_await legs_.labels().save();
  if (!done || !legs_.are_whole()) co_return done;
  epoch_.miss_nothing();
  co_return co_await epoch_.save();
}

}  // namespace cairn::drive
