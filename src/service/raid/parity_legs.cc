// SPDX-License-Identifier: Apache-2.0
// What parity knows of its legs, and how it tells them.
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "service/raid/leg_concerns.h"
#include "service/raid/parity_drive.h"

namespace cairn::drive {

namespace {

ParityLayout layout_of(const ParityLabel& label) {
  return {.data = static_cast<size_t>(label.legs - label.parity),
          .legs = label.legs,
          .chunk = label.chunk_blocks};
}

}  // namespace

ParityDrive::ParityDrive(env::Env& env, ParityOptions options, ParityFound found, LateDrives* late,
                         uint64_t slice, Buffer state_block)
    : ServiceDrive({}),
      env_(env),
      options_(options),
      layout_(layout_of(found.label)),
      code_(layout_.data, found.label.parity),
      slice_(slice),
      region_rows_(found.label.region_rows()),
      legs_(std::move(found.legs)),
      opening_(env.rng().next() | 1),
      is_new_(found.is_new),
      epoch_(found.state.epoch),
      state_sequence_(found.state.sequence),
      states_differ_(found.states_differ),
      log_head_(found.label.log_blocks),
      touched_(found.label.regions()),
      missed_(std::move(found.state.missed)),
      lacking_(found.label.regions()),
      claim_(env, *this, legs_, gate()),
      labels_(*this, legs_, claim_, found.label, env.rng().next() | 1),
      state_block_(std::move(state_block)),
      closing_(env.stop_token()),
      reviver_(env, *this, legs_, late, options.retry, closing_.token(), gate()),
      pace_(env, options.rate) {
  geometry_.block_size = label().block_size;
  geometry_.transfer_blocks = UINT32_MAX;
  uint64_t discard = layout_.chunk;
  const auto take_in = [&](const Geometry& one) {
    geometry_.transfer_blocks = std::min(geometry_.transfer_blocks, one.transfer_blocks);
    discard = std::lcm(discard, std::max<uint64_t>(one.discard_blocks, 1));
  };
  for (const Leg& leg : legs_) {
    if (leg.drive != nullptr) take_in(leg.drive->geometry());
  }
  for (const std::unique_ptr<Drive>& spare : legs_.spares) take_in(spare->geometry());
  geometry_.blocks = label().rows * layout_.data;
  geometry_.optimal_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(layout_.stripe_blocks(), geometry_.transfer_blocks));
  geometry_.discard_blocks =
      static_cast<uint32_t>(std::min<uint64_t>(discard * layout_.data, UINT32_MAX));
  geometry_.atomic_blocks = static_cast<uint32_t>(std::gcd(layout_.chunk, std::bit_floor(slice_)));
  geometry_.volatile_cache = false;
  geometry_.copies = 2;
}

ParityDrive::LegSet ParityDrive::legs_in(State state) const {
  LegSet set = 0;
  for (size_t i = 0; i < legs_.size(); ++i) {
    if (legs_[i].state == state) set |= LegSet{1} << i;
  }
  return set;
}

SymbolSet ParityDrive::symbols_on(uint64_t row, LegSet legs) const {
  SymbolSet set = 0;
  for (size_t symbol = 0; symbol < layout_.legs; ++symbol) {
    if ((legs >> layout_.leg_of(row, symbol) & 1) != 0) set |= SymbolSet{1} << symbol;
  }
  return set;
}

ParityStatus ParityDrive::status() const {
  return {.good = count(State::kGood),
          .copying = count(State::kCopying),
          .lost = count(State::kLost),
          .spares = legs_.spares.size(),
          .regions = missed_.size(),
          .regions_missed = missed_.count(),
          .regions_to_copy = lacking_.count(),
          .generation = label().generation,
          .epoch = epoch_,
          .computed = computed_,
          .mended = mended_};
}

std::vector<Fact> ParityDrive::facts() const {
  const ParityStatus now = status();
  return {{"legs_good", now.good},
          {"legs_copying", now.copying},
          {"legs_lost", now.lost},
          {"spares", now.spares},
          {"drives_refused", legs_.refused},
          {"regions", now.regions},
          {"regions_missed", now.regions_missed},
          {"regions_to_copy", now.regions_to_copy},
          {"log_blocks", label().log_blocks},
          {"log_used", log_head_},
          {"log_epochs", now.epoch},
          {"computed", now.computed},
          {"mended", now.mended},
          {"scrub_percent", scrub_runs_ ? scrub_row_ * 100 / label().rows : 0}};
}

std::vector<Concern> ParityDrive::concerns() const {
  std::vector<Concern> all = concerns_of(
      legs_, {.good_min = layout_.data, .spares = options_.spares, .retry = options_.retry});
  if (stuck_ > 0 || is_broken_) {
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
  const uint64_t row = geometry_.block_size * layout_.data;
  if (count(State::kCopying) > 0) {
    const uint64_t region = region_rows_ * row;
    all.push_back({.name = "rebuild",
                   .done = (lacking_.size() - lacking_.count()) * region,
                   .total = lacking_.size() * region});
  }
  if (scrub_runs_) {
    all.push_back({.name = "scrub", .done = scrub_row_ * row, .total = label().rows * row});
  }
  return all;
}

// A first label, on some legs or all, is a drive that never was: two make it one. The first comes
// before anything else, so that a crash leaves legs that are known again; the second when all legs
// together are words of zeroes.
task::Task<Result<void>> ParityDrive::make_new() {
  Result<void> done = co_await labels_.save();
  if (!done) co_return done;
  const Request discard{
      .kind = Request::Kind::kDiscard, .lba = Lba(label().data_offset()), .blocks = label().rows};
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    join.add();
    gate().spawn(zero_on(leg, discard, outcome, join));
  }
  const Result<void> zeroed = co_await join.all();
  if (!zeroed) co_return zeroed;
  // The block of the second label may hold what was there before; a leg that lacks that label gets
  // the third into the other block, and would have both.
  std::ranges::fill(state_block_.bytes(), std::byte{0});
  const MutableBytes zeroes = state_block_.bytes();
  const Request blank{
      .kind = Request::Kind::kWrite, .lba = Lba((label().generation + 1) % 2), .blocks = 1};
  for (const Request& request : {blank, Request{.kind = Request::Kind::kFlush}}) {
    const bool is_write = request.kind == Request::Kind::kWrite;
    outcome = co_await submit_to_all(request, is_write ? Memory(&zeroes, 1) : Memory());
    if (outcome.failed != 0) co_return outcome.failure;
    if (!outcome.other) co_return outcome.other;
  }
  done = co_await save_state(epoch_);
  labels_.note_change();
  if (done) done = co_await labels_.save();
  co_return done;
}

task::Task<Result<void>> ParityDrive::begin(ParityLabel newest) {
  const Result<void> got = co_await units_.acquire(kUnits);
  CHECK(got.has_value());
  const task::Units all(units_, kUnits);
  const Result<void> done = co_await begin_alone(newest);
  is_broken_ = !done.has_value();  // then nothing ends the epoch: its entries are still to judge
  if (!done) co_return done;
  if (count(State::kCopying) > 0) lacking_ = missed_;
  wake_copier();
  reviver_.wake();
  co_return done;
}

task::Task<Result<void>> ParityDrive::begin_alone(const ParityLabel& newest) {
  Result<void> done;
  if (is_new_) {
    done = co_await make_new();
    log_head_ = 0;
  } else {
    done = co_await labels_.level(newest);
    // Who is lost is settled before the log is judged by those who are there.
    if (done) done = co_await labels_.save();
    if (done) done = co_await check_state();
    for (size_t leg = 0; done && leg < legs_.size(); ++leg) {
      if (legs_[leg].state == State::kCopying) co_await bring_up_to_date(leg);
    }
    // One that some legs lack was never in force. All get it, before the next takes the place of
    // the one before it.
    if (done && states_differ_) done = co_await write_state(epoch_, state_sequence_);
    if (done) done = co_await replay();
    if (is_whole()) missed_ = RegionSet(missed_.size());
    if (done) done = co_await checkpoint_alone();
  }
  co_return done;
}

// What is changed in this epoch may be nowhere but in the caches of a leg that is lost.
void ParityDrive::note_missed(RowSpan rows) {
  const RowSpan regions = regions_of(rows);
  const bool is_missed = !is_whole();
  for (uint64_t region = regions.first; region < regions.end(); ++region) {
    touched_.add(region);
    if (is_missed) missed_.add(region);
  }
}

// Its writes are missed from here on. False: parity cannot replace one more.
bool ParityDrive::drop(size_t leg) {
  Leg& lost = legs_[leg];
  if (lost.state == State::kLost) return true;
  if (lost.state == State::kGood) {
    if (count(State::kGood) == layout_.data) return false;
    lost.stale_from = Leg::kUnsaved;
    labels_.note_change();
    missed_.add(touched_);
  }
  lost.state = State::kLost;
  env_.trace().record("parity.leg_lost", leg, label().generation);
  reviver_.wake();
  return true;
}

// What a leg took into its log is there, whatever it forgot: where parity cannot replace it, that
// is put into place again.
void ParityDrive::look_at_legs() {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg) || !legs_[leg].has_changed()) continue;
    env_.trace().record("parity.leg_changed", leg, label().generation);
    if (drop(leg)) continue;
    legs_[leg].remember();
    doubtful_ |= LegSet{1} << leg;
    ++doubts_;
    must_replay_ = true;
    recovery_tried_.reset();
    wake_recovery();
  }
}

Result<void> ParityDrive::believed(size_t leg, const Result<void>& done) {
  look_at_legs();
  const bool is_trusted = legs_[leg].state == State::kGood && (doubtful_ >> leg & 1) == 0;
  if (is_trusted || (!done && blames_leg(done.error()))) return done;
  return fail(Errc::kIo, "the leg was restarted, and may lack what was written");
}

task::Task<Result<void>> ParityDrive::lose(LegSet legs) {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if ((legs >> leg & 1) == 0) continue;
    if (!drop(leg)) co_return fail(Errc::kIo, "more legs fail than parity can replace");
  }
  co_return co_await labels_.save();
}

task::Task<Result<void>> ParityDrive::judge(Outcome outcome) {
  if (!outcome.other) co_return outcome.other;
  if (outcome.failed == 0) co_return Result<void>();
  co_return co_await lose(outcome.failed);
}

// A leg that does not do what it must, for whatever reason, lacks something from then on.
void ParityDrive::note(size_t leg, const Result<void>& done, Outcome& outcome) {
  if (done) {
    outcome.done |= LegSet{1} << leg;
  } else if (done.error() == Errc::kLimit || done.error() == Errc::kCancelled) {
    outcome.other = done;
  } else {
    outcome.failed |= LegSet{1} << leg;
    if (outcome.failure) outcome.failure = done;
  }
}

task::Task<void> ParityDrive::submit_to(size_t leg, Request request, Memory memory,
                                        Outcome& outcome, Join& join) {
  const Result<void> done = co_await legs_[leg].drive->submit(request, memory);
  note(leg, done, outcome);
  join.finish(done);
}

task::Task<ParityDrive::Outcome> ParityDrive::submit_to_all(Request request, Memory memory) {
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg)) continue;
    join.add();
    gate().spawn(submit_to(leg, request, memory, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  co_return outcome;
}

bool ParityDrive::give_up(size_t leg, const Error& why) { return blames_leg(why) && drop(leg); }

// One that does not take it is lost.
task::Task<void> ParityDrive::bring_up_to_date(size_t leg) {
  const Result<void> written = co_await labels_.bring_up_to_date(leg);
  if (!written) drop(leg);
}

task::Task<Result<void>> ParityDrive::write_label_on(size_t leg, const ParityLabel& label) {
  ParityLabel one = label;
  one.own = static_cast<uint8_t>(leg);
  one.medium = legs_[leg].medium;
  Drive& drive = *legs_[leg].drive;
  Label own = encode_parity_label(one, drive.geometry().blocks);
  --own.generation;  // put_label() counts it up
  co_return co_await put_label(env_, drive, kParityLabel, own);
}

task::Task<void> ParityDrive::close() {
  closing_.request();
  const Result<void> got = co_await units_.acquire(kUnits);
  CHECK(got.has_value());
  if (!is_broken_ && stuck_ == 0 && log_head_ > 0) {
    const Result<void> emptied = co_await checkpoint_alone();
    (void)emptied;  // if not, the next start carries out what the log holds
  }
  units_.release(kUnits);
  co_await gate().close();
  co_await legs_.close();
}

}  // namespace cairn::drive
