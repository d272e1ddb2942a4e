// SPDX-License-Identifier: Apache-2.0
// What a mirror knows of its legs, and how it tells them.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "service/raid/leg_concerns.h"
#include "service/raid/mirror_drive.h"

namespace cairn::drive {

MirrorStatus MirrorDrive::status() const {
  return {.good = count(State::kGood),
          .copying = count(State::kCopying),
          .lost = count(State::kLost),
          .spares = legs_.spares.size(),
          .regions = marked_.size(),
          .regions_marked = marked_.count(),
          .regions_to_copy = std::max(unequal_.count(), lacking_.count()),
          .generation = label_.generation};
}

std::vector<Fact> MirrorDrive::facts() const {
  const MirrorStatus now = status();
  return {{"legs_good", now.good},
          {"legs_copying", now.copying},
          {"legs_lost", now.lost},
          {"spares", now.spares},
          {"drives_refused", legs_.refused},
          {"regions", now.regions},
          {"regions_marked", now.regions_marked},
          {"regions_to_copy", now.regions_to_copy}};
}

std::vector<Concern> MirrorDrive::concerns() const {
  return concerns_of(legs_, {.spares = options_.spares, .retry = options_.retry});
}

std::vector<Job> MirrorDrive::jobs() const {
  const uint64_t left = std::max(unequal_.count(), lacking_.count());
  if (left == 0 && count(State::kCopying) == 0) return {};
  const uint64_t region = label_.region_blocks * geometry_.block_size;
  return {{.name = "resync",
           .done = (marked_.size() - left) * region,
           .total = marked_.size() * region}};
}

task::Task<std::expected<std::string, std::string>> MirrorDrive::tell(
    std::vector<std::string> words) {
  if (words.size() != 1 || words[0] != "retry") {
    co_return std::unexpected("mirror takes one command: retry");
  }
  co_return reviver_.try_now();
}

task::Task<Result<void>> MirrorDrive::begin(MirrorLabel newest) {
  Result<void> done;
  if (is_new_) {
    // A first label, on some legs or all, is a mirror that never was: two make it one. It comes
    // before anything else, so that a crash leaves legs that are known again.
    done = co_await save_label();
    label_is_old_ = true;
    // Holes of new legs are alike only when no power loss undoes the discard that made one.
    if (done) done = co_await flush({});
  }
  if (!is_new_) done = co_await level_labels(newest);
  // Legs may have marks that others lack, from a crash between two of them.
  if (done && (is_new_ || !wanted_.empty())) done = co_await save_marks();
  if (done) done = co_await save_label();
  if (done && !is_new_) done = co_await check_marks();
  if (!done) co_return done;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (legs_[leg].state == State::kCopying) co_await bring_up_to_date(leg);
  }
  wake_copier();
  reviver_.wake();
  wake_sweeper();
  co_return done;
}

// The one that was keeps its part as long as it is good.
void MirrorDrive::choose_primary() {
  if (legs_[label_.primary].state == State::kGood) return;
  const auto good = std::ranges::find(legs_, State::kGood, &Leg::state);
  CHECK(good != legs_.end(), "the last good leg is never dropped");
  label_.primary = static_cast<uint32_t>(good - legs_.begin());
}

// Its writes are missed from here on. The last good leg stays, whatever it does.
void MirrorDrive::drop(size_t leg) {
  Leg& lost = legs_[leg];
  if (lost.state == State::kLost) return;
  if (lost.state == State::kGood) {
    if (count(State::kGood) == 1) return;
    lost.stale_from = Leg::kUnsaved;
    label_is_old_ = true;
  }
  lost.state = State::kLost;
  choose_primary();
  env_.trace().record("mirror.leg_lost", leg, label_.generation);
  reviver_.wake();
}

void MirrorDrive::look_at_legs() {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg) || !legs_[leg].has_changed()) continue;
    env_.trace().record("mirror.leg_changed", leg, label_.generation);
    drop(leg);
    if (legs_[leg].state == State::kLost) continue;
    // No other has all data: what this one has now is all there is.
    legs_[leg].remember();
    note_loss();
  }
}

// Good legs may have forgotten what was not flushed, each something else: as after a power loss.
void MirrorDrive::note_loss() {
  ++losses_;
  for (size_t region = marked_.next(0); region < marked_.size();
       region = marked_.next(region + 1)) {
    must_copy(region);
  }
}

task::Task<Result<LegsClaim::Seen>> MirrorDrive::look_at_label(size_t leg,
                                                               task::CancelToken token) {
  const Result<MirrorLabel> found = co_await read_mirror_label(env_, *legs_[leg].drive, token);
  if (!found) co_return fail(found.error());
  co_return LegsClaim::Seen{.is_others = found->id == label_.id && found->writer != label_.writer,
                            .generation = found->generation};
}

// Whoever had the legs may have gone on until they were claimed.
task::Task<Result<void>> MirrorDrive::check_marks() {
  for (Leg& leg : legs_) {
    if (leg.state != State::kGood) continue;
    const Result<void> read =
        co_await leg.drive->read(Lba(kMirrorBitmapBlock), bitmap_block_.bytes());
    if (!read) continue;
    Result<RegionSet> marked = decode_bitmap(label_, bitmap_block_.bytes());
    if (!marked) continue;
    marked->remove(wanted_);
    if (!marked->empty()) co_return fail(changed_meanwhile());
  }
  co_return Result<void>();
}

// Done when the newest facts about legs are durable on every good one.
task::Task<Result<void>> MirrorDrive::save_label() {
  // Whoever saves one now has not finished: what it says is not durable yet.
  if (!label_is_old_ && label_turn_.available() > 0) co_return Result<void>();
  Result<void> turn = co_await label_turn_.acquire();
  CHECK(turn.has_value());
  Result<void> saved = co_await claim_.check(label_.generation);
  while (label_is_old_ && saved) {
    label_is_old_ = false;
    ++label_.generation;
    for (size_t i = 0; i < legs_.size(); ++i) {
      if (legs_[i].stale_from == Leg::kUnsaved) legs_[i].stale_from = label_.generation;
      label_.legs[i] = {.id = legs_[i].id, .stale_from = legs_[i].stale_from};
    }
    const MirrorLabel label = label_;
    bool has_one = false;
    std::array<bool, kMirrorLegsMax> is_copied_to{};
    for (size_t leg = 0; leg < legs_.size(); ++leg) {
      is_copied_to[leg] = legs_[leg].state == State::kCopying;
    }
    // Legs that are copied to come last, and only when one with all data has the label: if they had
    // several more than it, the next start would not believe it.
    for (const bool others : {false, true}) {
      for (size_t leg = 0; leg < legs_.size(); ++leg) {
        if (is_copied_to[leg] != others || !is_written(leg) || (others && !has_one)) continue;
        const Result<void> written = co_await write_label(leg, label);
        if (!written) {
          saved = written;
          drop(leg);
        } else if (legs_[leg].state == State::kGood) {
          has_one = true;
        }
      }
    }
    if (has_one) {
      saved = {};
      claim_.claimed(label.generation);
    } else {
      label_is_old_ = true;
      if (saved) saved = fail(Errc::kUnreachable, "no leg of the mirror is left");
    }
  }
  label_turn_.release();
  co_return saved;
}

// Good legs that lack the newest label get it before the first of this opening (leg.h). It names
// who wrote it: an opening that is refused after this has taken nothing from anybody.
task::Task<Result<void>> MirrorDrive::level_labels(MirrorLabel newest) {
  if (std::ranges::none_of(legs_, &Leg::lacks_label)) co_return Result<void>();
  const Result<void> owned = co_await claim_.check(newest.generation);
  if (!owned) co_return owned;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!legs_[leg].lacks_label || legs_[leg].state != State::kGood) continue;
    const Result<void> written = co_await write_label(leg, newest);
    if (!written) drop(leg);
    if (!written && legs_[leg].state == State::kGood) co_return written;
    legs_[leg].lacks_label = false;
  }
  co_return Result<void>();
}

// Of a leg that is to be copied to: it gets the label that the others have, and each from here on.
// So it lacks at most one, that which calls it good, when a crash comes between two legs. With more
// it would have to be copied as a whole. One that does not take it is lost.
task::Task<void> MirrorDrive::bring_up_to_date(size_t leg) {
  Result<void> turn = co_await label_turn_.acquire();
  CHECK(turn.has_value());
  const MirrorLabel label = label_;
  const Result<void> written = co_await write_label(leg, label);
  if (!written) drop(leg);
  label_turn_.release();
}

task::Task<Result<void>> MirrorDrive::write_label(size_t leg, const MirrorLabel& label) {
  MirrorLabel own = label;
  own.own_id = legs_[leg].id;
  own.medium = legs_[leg].medium;
  encode_label(own, label_block_.bytes());
  const MutableBytes piece = label_block_.bytes();
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = true,
                        .metadata = true,
                        .lba = Lba(label.generation % 2),
                        .blocks = 1};
  co_return co_await legs_[leg].drive->submit(request, {&piece, 1});
}

// Done when the regions' bits are durable on every good leg. Those that come meanwhile share the
// next write.
task::Task<Result<void>> MirrorDrive::mark(Span regions) {
  const auto all_marked = [this, regions] {
    bool all = true;
    for (uint64_t i = 0; i < regions.count; ++i) all = all && marked_.has(regions.first + i);
    return all;
  };
  if (all_marked()) co_return Result<void>();
  for (uint64_t i = 0; i < regions.count; ++i) wanted_.add(regions.first + i);
  Result<void> done = co_await bitmap_turn_.acquire();
  CHECK(done.has_value());
  if (!all_marked()) done = co_await save_bitmap(true);
  bitmap_turn_.release();
  co_return done;
}

// All marks, durable on every leg that is written.
task::Task<Result<void>> MirrorDrive::save_marks() {
  Result<void> done = co_await bitmap_turn_.acquire();
  CHECK(done.has_value());
  done = co_await save_bitmap(true);
  bitmap_turn_.release();
  co_return done;
}

// Whoever calls it has the bitmap's turn.
task::Task<Result<void>> MirrorDrive::save_bitmap(bool durable) {
  const Result<void> owned = co_await claim_.check(label_.generation);
  if (!owned) co_return owned;
  const RegionSet saved = wanted_;
  encode_bitmap(saved, label_, bitmap_block_.bytes());
  const MutableBytes piece = bitmap_block_.bytes();
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = durable,
                        .metadata = true,
                        .lba = Lba(kMirrorBitmapBlock),
                        .blocks = 1};
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg)) continue;
    join.add();
    gate().spawn(run_on(leg, request, {&piece, 1}, {}, outcome, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // judged leg by leg
  Result<void> done = co_await judge(outcome, {}, {});
  if (done && durable) marked_.add(saved);  // marks that a crash may take are no marks
  co_return done;
}

task::Task<void> MirrorDrive::close() {
  closing_.request();
  // In good order nothing differs any more: the next start has nothing to copy.
  const bool unmarked = co_await unmark_idle(true);
  (void)unmarked;  // if not, it is copied then
  co_await gate().close();
  co_await legs_.close();
}

}  // namespace cairn::drive
