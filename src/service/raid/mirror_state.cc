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
          .regions = unequal_.size(),
          .regions_marked = intent_.marked(),
          .regions_to_copy = std::max(unequal_.count(), lacking_.count()),
          .generation = label().generation};
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
  const uint64_t region = label().region_blocks * geometry_.block_size;
  return {{.name = "resync",
           .done = (unequal_.size() - left) * region,
           .total = unequal_.size() * region}};
}

task::Task<std::expected<std::string, std::string>> MirrorDrive::tell(
    std::vector<std::string> args) {
  if (args.size() != 1 || args[0] != "retry") {
    co_return std::unexpected("mirror takes one command: retry");
  }
  co_return reviver_.try_now();
}

task::Task<Result<void>> MirrorDrive::begin(MirrorLabel newest) {
  Result<void> done;
  if (is_new_) {
    // A first label, on some legs or all, is a mirror that never was: two make it one. It comes
    // before anything else, so that a crash leaves legs that are known again.
    done = co_await labels_.save();
    labels_.note_change();
    // Holes of new legs are alike only when no power loss undoes the discard that made one.
    if (done) done = co_await flush({});
  }
  if (!is_new_) done = co_await labels_.level(newest);
  // Legs may have marks that others lack, from a crash between two of them.
  if (done && (is_new_ || intent_.marked() > 0)) done = co_await intent_.save_again();
  if (done) done = co_await labels_.save();
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
  if (legs_[primary_].state == State::kGood) return;
  const auto good = std::ranges::find(legs_, State::kGood, &Leg::state);
  CHECK(good != legs_.end(), "the last good leg is never dropped");
  primary_ = static_cast<uint32_t>(good - legs_.begin());
}

// Its writes are missed from here on. The last good leg stays, whatever it does.
void MirrorDrive::drop(size_t leg) {
  Leg& lost = legs_[leg];
  if (lost.state == State::kLost) return;
  if (lost.state == State::kGood) {
    if (count(State::kGood) == 1) return;
    lost.stale_from = Leg::kUnsaved;
    labels_.note_change();
  }
  lost.state = State::kLost;
  choose_primary();
  env_.trace().record("mirror.leg_lost", leg, label().generation);
  reviver_.wake();
}

void MirrorDrive::look_at_legs() {
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!is_written(leg) || !legs_[leg].has_changed()) continue;
    env_.trace().record("mirror.leg_changed", leg, label().generation);
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
  const RegionSet& marks = intent_.marks();
  for (size_t region = marks.next(0); region < marks.size(); region = marks.next(region + 1)) {
    must_copy(region);
  }
}

task::Task<Result<LegsClaim::Seen>> MirrorDrive::look_at_label(size_t leg,
                                                               task::CancelToken token) {
  const Result<MirrorLabel> found = co_await read_mirror_label(env_, *legs_[leg].drive, token);
  if (!found) co_return fail(found.error());
  co_return LegsClaim::Seen{.is_others = found->id == label().id && found->writer != label().writer,
                            .generation = found->generation};
}

// Whoever had the legs may have gone on until they were claimed.
task::Task<Result<void>> MirrorDrive::check_marks() {
  for (Leg& leg : legs_) {
    if (leg.state != State::kGood) continue;
    const Result<void> read =
        co_await leg.drive->read(Lba(kMirrorBitmapBlock), bitmap_block_.bytes());
    if (!read) continue;
    Result<RegionSet> marked = decode_bitmap(label(), bitmap_block_.bytes());
    if (!marked) continue;
    marked->remove(intent_.marks());
    if (!marked->empty()) co_return fail(changed_meanwhile());
  }
  co_return Result<void>();
}

// Whoever fails to take a label, for whatever reason, would be taken for good by the next start.
bool MirrorDrive::give_up(size_t leg, const Error& /*why*/) {
  drop(leg);
  return legs_[leg].state == State::kLost;
}

// One that does not take it is lost.
task::Task<void> MirrorDrive::bring_up_to_date(size_t leg) {
  const Result<void> written = co_await labels_.bring_up_to_date(leg);
  if (!written) drop(leg);
}

task::Task<Result<void>> MirrorDrive::write_label_on(size_t leg, const MirrorLabel& label) {
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

// Done when they are on every good leg.
task::Task<Result<void>> MirrorDrive::save_marks(const RegionSet& marks, bool durable) {
  const Result<void> owned = co_await claim_.check(label().generation);
  if (!owned) co_return owned;
  encode_bitmap(marks, label(), bitmap_block_.bytes());
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
  co_return co_await judge(outcome, {}, {});
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
