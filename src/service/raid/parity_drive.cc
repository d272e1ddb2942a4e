// SPDX-License-Identifier: Apache-2.0
#include "service/raid/parity_drive.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "drive/scratch.h"
#include "service/raid/leg_concerns.h"
#include "service/raid/leg_search.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr Duration kReviveTimeout = 5_s;  // for a lost leg's label

}  // namespace

ParityDrive::ParityDrive(env::Env& env, ParityOptions options, ParityFound found, LateDrives* late,
                         uint64_t slice, Buffer state_block)
    : ServiceDrive({}),
      env_(env),
      options_(options),
      shape_(ParityShape::of(found.label, slice)),
      opening_(env.rng().next() | 1),
      is_new_(found.is_new),
      states_differ_(found.states_differ),
      closing_(env.stop_token()),
      context_{.env = env,
               .shape = shape_,
               .gate = gate(),
               .closing = closing_.token(),
               .retry = options.retry},
      legs_(context_, *this, std::move(found.legs), found.label, env.rng().next() | 1),
      epoch_(context_, legs_, std::move(found.state), std::move(state_block)),
      log_(context_, legs_, epoch_),
      rows_(context_, legs_, log_),
      writer_(context_, legs_, log_, rows_),
      pace_(env, options.rate),
      copier_(context_, legs_, epoch_, log_, rows_, pace_),
      scrub_(context_, legs_, log_, rows_, pace_),
      reviver_(env, *this, legs_.all(), late, options.retry, closing_.token(), gate()) {
  set_geometry();
}

void ParityDrive::set_geometry() {
  geometry_.block_size = shape_.block_size;
  geometry_.transfer_blocks = UINT32_MAX;
  uint64_t discard = shape_.layout.chunk;
  const auto take_in = [&](const Geometry& one) {
    geometry_.transfer_blocks = std::min(geometry_.transfer_blocks, one.transfer_blocks);
    discard = std::lcm(discard, std::max<uint64_t>(one.discard_blocks, 1));
  };
  for (const Leg& leg : legs_.all()) {
    if (leg.drive != nullptr) take_in(leg.drive->geometry());
  }
  for (const std::unique_ptr<Drive>& spare : legs_.all().spares) take_in(spare->geometry());
  geometry_.blocks = shape_.rows * shape_.layout.data;
  geometry_.optimal_blocks = static_cast<uint32_t>(
      std::min<uint64_t>(shape_.layout.stripe_blocks(), geometry_.transfer_blocks));
  geometry_.discard_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(discard * shape_.layout.data, UINT32_MAX));
  geometry_.atomic_blocks =
      static_cast<uint32_t>(std::gcd(shape_.layout.chunk, std::bit_floor(shape_.slice)));
  geometry_.volatile_cache = false;
  geometry_.copies = 2;
}

task::Task<Result<void>> ParityDrive::run(DriveOp& op) {
  switch (op.request.kind) {
    case Request::Kind::kRead:
    case Request::Kind::kCompare:
      return writer_.reader().read(op);
    case Request::Kind::kFlush:
      return flush();
    default:
      return writer_.change(op);
  }
}

// What completed is in logs, durably.
task::Task<Result<void>> ParityDrive::flush() {
  if (log_.is_broken()) co_return fail(Errc::kClosed, "parity is being closed");
  co_return Result<void>();
}

ParityStatus ParityDrive::status() const {
  return {.good = legs_.count(State::kGood),
          .copying = legs_.count(State::kCopying),
          .lost = legs_.count(State::kLost),
          .spares = legs_.all().spares.size(),
          .regions = epoch_.missed().size(),
          .regions_missed = epoch_.missed().count(),
          .regions_to_copy = copier_.lacking().count(),
          .generation = legs_.label().generation,
          .epoch = epoch_.number(),
          .computed = rows_.computed(),
          .mended = rows_.mended()};
}

std::vector<Fact> ParityDrive::facts() const {
  const ParityStatus now = status();
  return {{"legs_good", now.good},
          {"legs_copying", now.copying},
          {"legs_lost", now.lost},
          {"spares", now.spares},
          {"drives_refused", legs_.all().refused},
          {"regions", now.regions},
          {"regions_missed", now.regions_missed},
          {"regions_to_copy", now.regions_to_copy},
          {"log_blocks", shape_.log_blocks},
          {"log_used", log_.used()},
          {"log_epochs", now.epoch},
          {"computed", now.computed},
          {"mended", now.mended},
          {"scrub_percent", scrub_.runs() ? scrub_.row() * 100 / shape_.rows : 0}};
}

std::vector<Concern> ParityDrive::concerns() const {
  std::vector<Concern> all = concerns_of(
      legs_.all(),
      {.good_min = shape_.layout.data, .spares = options_.spares, .retry = options_.retry});
  if (log_.is_stuck()) {
    all.insert(all.begin(),
               {.health = Health::kFailing,
                .code = "write_stuck",
                .what = "a write waits for a leg without which data would be lost: bring the legs "
                        "back, or open the stack again when they are there"});
  }
  return all;
}

std::vector<Job> ParityDrive::jobs() const {
  std::vector<Job> all;
  const uint64_t row = geometry_.block_size * shape_.layout.data;
  if (legs_.count(State::kCopying) > 0) {
    const uint64_t region = shape_.region_rows * row;
    all.push_back({.name = "rebuild",
                   .done = (copier_.lacking().size() - copier_.lacking().count()) * region,
                   .total = copier_.lacking().size() * region});
  }
  if (scrub_.runs()) {
    all.push_back({.name = "scrub", .done = scrub_.row() * row, .total = shape_.rows * row});
  }
  return all;
}

task::Task<std::expected<std::string, std::string>> ParityDrive::tell(
    std::vector<std::string> args) {
  if (args == std::vector<std::string>{"retry"}) co_return reviver_.try_now();
  if (args.size() != 1 || args[0] != "scrub") {
    co_return std::unexpected("parity takes one command: scrub, or retry");
  }
  co_return co_await scrub_.run();
}

// A first label, on some legs or all, is a drive that never was: two make it one. The first comes
// before anything else, so that a crash leaves legs that are known again; the second when all legs
// together are words of zeroes.
task::Task<Result<void>> ParityDrive::make_new() {
  Result<void> done = co_await legs_.labels().save();
  if (!done) co_return done;
  const Request discard{
      .kind = Request::Kind::kDiscard, .lba = shape_.lba(0), .blocks = shape_.rows};
  ParityOutcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    join.add();
    gate().spawn(legs_.zero_on(leg, discard, outcome, join));
  }
  const Result<void> zeroed = co_await join.all();
  if (!zeroed) co_return zeroed;
  // The block of the second label may hold what was there before; a leg that lacks that label gets
  // the third into the other block, and would have both.
  Result<Scratch> block = Scratch::make(env_, shape_.block_size);
  if (!block) co_return fail(block.error());
  std::ranges::fill(block->bytes(), std::byte{0});
  const MutableBytes zeroes = block->bytes();
  const Request blank{
      .kind = Request::Kind::kWrite, .lba = Lba((legs_.label().generation + 1) % 2), .blocks = 1};
  for (const Request& request : {blank, Request{.kind = Request::Kind::kFlush}}) {
    const bool is_write = request.kind == Request::Kind::kWrite;
    outcome = co_await legs_.submit_to_all(
        request, is_write ? ParityLegs::Memory(&zeroes, 1) : ParityLegs::Memory());
    if (outcome.failed != 0) co_return outcome.failure;
    if (!outcome.other) co_return outcome.other;
  }
  done = co_await epoch_.save();
  legs_.labels().note_change();
  if (done) done = co_await legs_.labels().save();
  co_return done;
}

task::Task<Result<void>> ParityDrive::begin(ParityLabel newest) {
  const Result<task::Units> all = co_await log_.stop_updates({});
  CHECK(all.has_value());
  const Result<void> done = co_await begin_alone(newest);
  // Nothing ends the epoch then: its entries are still to judge.
  if (!done) log_.give_up();
  if (!done) co_return done;
  if (legs_.count(State::kCopying) > 0) copier_.add(epoch_.missed());
  copier_.wake();
  reviver_.wake();
  co_return done;
}

task::Task<Result<void>> ParityDrive::begin_alone(const ParityLabel& newest) {
  Result<void> done;
  if (is_new_) {
    done = co_await make_new();
    log_.begin_empty();
  } else {
    done = co_await legs_.labels().level(newest);
    // Who is lost is settled before the log is judged by those who are there.
    if (done) done = co_await legs_.labels().save();
    if (done) done = co_await epoch_.check();
    for (size_t leg = 0; done && leg < legs_.size(); ++leg) {
      if (legs_[leg].state == State::kCopying) co_await legs_.bring_up_to_date(leg);
    }
    // One that some legs lack was never in force. All get it, before the next takes the place of
    // the one before it.
    if (done && states_differ_) done = co_await epoch_.level();
    if (done) done = co_await log_.replay();
    if (legs_.are_whole()) epoch_.miss_nothing();
    if (done) done = co_await log_.checkpoint();
  }
  co_return done;
}

// What it has only in its caches is missed too.
void ParityDrive::leg_is_lost(bool was_good) {
  if (was_good) epoch_.miss_changes();
  reviver_.wake();
}

// A lost leg that answers, and is who it was, gets what it missed.
task::Task<bool> ParityDrive::revive(size_t index) {
  const Result<void> saved = co_await legs_.labels().save();
  if (!saved) co_return false;
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<ParityLabel> found =
      co_await read_parity_label(env_, *legs_[index].drive, deadline.token());
  const bool is_own =
      found && found->id == legs_.label().id && found->own_member().id == legs_[index].id;
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
  const Result<task::Units> all = co_await log_.stop_updates(closing_.token());
  if (!all) co_return false;
  Leg& leg = legs_[index];
  if (leg.state != State::kLost || log_.is_stuck() || !legs_.labels().are_saved()) {
    co_return false;
  }
  const LegVerdict verdict = judge_leg({.newest_generation = legs_.label().generation,
                                        .stale_from = leg.stale_from,
                                        .own_generation = found->generation,
                                        .own_stale_from = found->own_member().stale_from});
  if (verdict != LegVerdict::kStale) co_return false;
  leg.state = State::kCopying;
  copier_.add(epoch_.missed());
  env_.trace().record("parity.leg_back", index, legs_.label().generation);
  co_await legs_.bring_up_to_date(index);
  if (legs_[index].state == State::kLost) co_return false;
  copier_.wake();
  co_return true;
}

// Those above know what the legs that were there take at a time, which must not get less.
bool ParityDrive::fits(const Geometry& shape) const {
  return shape.block_size == legs_.label().block_size &&
         shape.blocks >= legs_.label().leg_blocks() &&
         shape.transfer_blocks >= geometry_.transfer_blocks;
}

task::Task<Newcomer> ParityDrive::meet(std::unique_ptr<Drive>& drive) {
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<ParityLabel> found =
      co_await judge_label(env_, *drive, {}, read_parity_label, deadline.token());
  if (!fits(drive->geometry())) co_return Newcomer::kForeign;
  co_return take_in(drive, found, legs_.label(), options_.moved, legs_.all());
}

task::Task<void> ParityDrive::replace(size_t index) {
  const bool filled = co_await fill_anew(index, true);
  (void)filled;  // if not, it is tried again
}

// First every region is missed, durably: a crash after the label names the new leg must find that
// it lacks all.
task::Task<bool> ParityDrive::fill_anew(size_t index, bool by_spare) {
  const Result<task::Units> all = co_await log_.stop_updates(closing_.token());
  if (!all) co_return false;
  if (log_.is_stuck()) co_return false;
  epoch_.miss_all();
  const Result<void> noted = co_await epoch_.save();
  if (!noted || legs_[index].state != State::kLost) co_return false;
  if (by_spare ? legs_.all().spares.empty() : legs_[index].has_changed()) co_return false;
  const uint64_t id = env_.rng().next() | 1;
  if (by_spare) {
    legs_.all().use_spare(index, id);
  } else {
    legs_.all().begin_anew(index, id);
  }
  legs_.labels().note_change();
  copier_.add_all();
  env_.trace().record(by_spare ? "parity.spare_used" : "parity.leg_anew", index,
                      legs_.label().generation);
  const Result<void> saved = co_await legs_.labels().save();
  (void)saved;  // it is tried again before the next change completes
  copier_.wake();
  co_return true;
}

task::Task<void> ParityDrive::close() {
  closing_.request();
  co_await log_.close();
  co_await gate().close();
  co_await legs_.all().close();
}

}  // namespace cairn::drive
