// SPDX-License-Identifier: Apache-2.0
// What a mirror does by itself: makes legs equal, takes legs back, forgets marks.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "drive/copy_blocks.h"
#include "drive/scratch.h"
#include "service/raid/leg_search.h"
#include "service/raid/mirror_drive.h"
#include "task/deadline.h"

namespace cairn::drive {

namespace {

constexpr uint64_t kCopyBytes = 256_KiB;  // at a time
constexpr uint32_t kReadAttempts = 3;     // before a leg is dropped that others can replace
constexpr Duration kSweepEvery = 1_s;     // a region that nobody wrote for so long is unmarked
constexpr Duration kReviveTimeout = 5_s;  // for a lost leg's label
constexpr Duration kBufferRetry = 10_ms;  // when buffers are all out

}  // namespace

void MirrorDrive::must_copy(size_t region) {
  unequal_.add(region);
  if (region == copied_region_) copy_again_ = true;
  wake_copier();
}

void MirrorDrive::wake_copier() {
  const bool has_work = has_to_copy() || count(State::kCopying) > 0;
  if (copier_runs_ || closing_.requested() || !has_work) return;
  copier_runs_ = true;
  gate().spawn(copy_all());
}

task::Task<void> MirrorDrive::copy_all() {
  const uint64_t max = std::min<uint64_t>(geometry_.transfer_blocks,
                                          std::max<uint64_t>(kCopyBytes / geometry_.block_size, 1));
  Result<Scratch> memory = Scratch::make(env_, max * geometry_.block_size);
  while (!memory && !closing_.requested()) {
    const Result<void> slept = co_await task::sleep_for(env_, kBufferRetry, closing_.token());
    if (slept) memory = Scratch::make(env_, max * geometry_.block_size);
  }
  size_t region = 0;
  while (!closing_.requested()) {
    if (lacking_.empty() && count(State::kCopying) > 0) co_await finish_copying();
    region = std::min(unequal_.next(region), lacking_.next(region));
    if (region < unequal_.size()) {
      copied_region_ = region;
      copy_again_ = false;
      const bool copied = co_await copy_region(region, memory->bytes());
      if (copied && !copy_again_) {
        unequal_.remove(region);
        lacking_.remove(region);
      }
      copied_region_ = SIZE_MAX;
      if (!copied) {
        const Result<void> slept = co_await task::sleep_for(env_, options_.retry, closing_.token());
        if (!slept) break;
      }
      ++region;
    } else if (has_to_copy()) {
      region = 0;
    } else if (count(State::kCopying) == 0) {
      break;
    }
  }
  copier_runs_ = false;
  wake_sweeper();
}

task::Task<bool> MirrorDrive::copy_region(size_t region, MutableBytes memory) {
  const uint64_t end = std::min(label().data_blocks, (region + 1) * label().region_blocks);
  if (claim_.is_due()) {
    const Result<void> owned = co_await claim_.check(label().generation);
    if (!owned) co_return false;
  }
  for (uint64_t at = region * label().region_blocks; at < end;) {
    const uint64_t copied = co_await copy_piece({at, end - at}, memory);
    if (copied == 0) co_return false;
    at += copied;
  }
  co_return true;
}

// How many blocks from the first on are holes of the leg that is copied from.
uint64_t MirrorDrive::holes_in(Span blocks) const {
  const size_t source = pick(blocks, {});
  if (source == SIZE_MAX) return 0;
  return holes_at(*legs_[source].drive, label().data_offset + blocks.first, blocks.count);
}

// From a good leg to all others, while nobody changes the blocks: how many of them, 0 on failure. A
// leg that cannot be read time and again is dropped when there is another.
task::Task<uint64_t> MirrorDrive::copy_piece(Span blocks, MutableBytes memory) {
  if (const uint64_t holes = holes_in(blocks); holes > 0) {
    blocks.count = holes;
  } else {
    blocks.count = std::min(blocks.count, memory.size() / geometry_.block_size);
    const Result<void> may =
        co_await pace_.take(blocks.count * geometry_.block_size, closing_.token());
    if (!may) co_return 0;
  }
  Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, blocks.first, blocks.count,
                    closing_.token());
  const Result<void> held = co_await hold;
  if (!held) co_return 0;
  co_return co_await copy_alone(blocks, memory);
}

// All of the blocks, or as many as the memory has room for.
task::Task<uint64_t> MirrorDrive::copy_alone(Span blocks, MutableBytes memory) {
  const Lba lba(label().data_offset + blocks.first);
  const size_t source = pick(blocks, {});
  if (source == SIZE_MAX) co_return 0;
  if (holes_in(blocks) == blocks.count) {
    look_at_legs();
    if (legs_[source].state != State::kGood) co_return 0;
    memory = {};
  } else {
    blocks.count = std::min(blocks.count, memory.size() / geometry_.block_size);
    memory = memory.first(blocks.count * geometry_.block_size);
    const Result<void> done = co_await legs_[source].drive->read(lba, memory, closing_.token());
    look_at_legs();
    if (legs_[source].state != State::kGood) co_return 0;
    if (!done) {
      if (closing_.requested() || ++unreadable_ < kReadAttempts) co_return 0;
      drop(source);
      unreadable_ = 0;
      const Result<void> saved = co_await labels_.save();
      (void)saved;  // it is tried again before the next change completes
      co_return 0;
    }
    unreadable_ = 0;
  }
  // Good legs that differ are alike for good before anybody sees which is right: the next power
  // loss may take the other one along.
  const Request request{.kind = Request::Kind::kWrite,
                        .durable = may_differ(blocks),
                        .priority = Priority::kLow,
                        .lba = lba,
                        .blocks = blocks.count};
  Outcome outcome;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (leg == source || !is_written(leg)) continue;
    join.add();
    gate().spawn(copy_to(leg, request, memory, outcome, join));
  }
  const Result<void> all = co_await join.all();
  if (all) co_return blocks.count;
  if (closing_.requested()) co_return 0;
  // A good leg that does not take its copy would go on with old data.
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!outcome.asked[leg] || outcome.results[leg]) continue;
    if (!blames_leg(outcome.results[leg].error())) co_return 0;
    drop(leg);
  }
  const Result<void> saved = co_await labels_.save();
  co_return saved ? blocks.count : 0;
}

// Without memory the blocks are holes; a leg whose blocks are holes too has them, for good once it
// was flushed.
task::Task<void> MirrorDrive::copy_to(size_t leg, Request request, MutableBytes memory,
                                      Outcome& outcome, Join& join) {
  outcome.asked[leg] = true;
  Drive& drive = *legs_[leg].drive;
  Result<void> done;
  if (!memory.empty()) {
    done = co_await write_copy(drive, request, memory, closing_.token());
  } else if (request.durable ||
             holes_at(drive, request.lba.value(), request.blocks) < request.blocks) {
    done = co_await write_holes(env_, drive, request, closing_.token());
  }
  outcome.results[leg] = done;
  join.finish(done);
}

// Nothing is lacking: once that is durable, legs that were copied to have all data, and may say so.
task::Task<void> MirrorDrive::finish_copying() {
  Result<void> flushed = co_await flush(closing_.token());
  // Its own bitmap knows nothing of the time it was away, and may be the only one left some day.
  if (flushed) flushed = co_await intent_.save_again();
  look_at_legs();
  if (closing_.requested() || !lacking_.empty()) co_return;
  if (!flushed) {
    const Result<void> slept = co_await task::sleep_for(env_, options_.retry, closing_.token());
    (void)slept;  // then it is tried again, or all ends
    co_return;
  }
  for (Leg& leg : legs_) {
    if (leg.state != State::kCopying) continue;
    leg.state = State::kGood;
    leg.stale_from = 0;
    labels_.note_change();
  }
  const Result<void> saved = co_await labels_.save();
  (void)saved;  // it is tried again before the next change completes
}

// A lost leg that answers, and is who it was, gets what is marked.
task::Task<bool> MirrorDrive::revive(size_t leg) {
  const Result<void> saved = co_await labels_.save();
  if (!saved) co_return false;
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<MirrorLabel> found =
      co_await read_mirror_label(env_, *legs_[leg].drive, deadline.token());
  Leg& lost = legs_[leg];
  const bool is_own = found && found->id == label().id && found->own_id == lost.id;
  const bool is_unknown = !found && found.error() == Errc::kNotFound;
  // Of a leg on several drives only one may be new: a label alone proves nothing.
  if (lost.is_replaced && (is_own || is_unknown)) {
    if (!fits(lost.drive->geometry())) co_return false;
    if (is_unknown) {
      const Result<void> blank =
          co_await check_blank(env_, *lost.drive, static_cast<int32_t>(leg + 1), deadline.token());
      if (!blank) co_return false;
    }
    co_return co_await fill_anew(leg, false);
  }
  if (!is_own || lost.state != State::kLost || !labels_.are_saved()) co_return false;
  const LegVerdict verdict = judge_leg({.newest_generation = label().generation,
                                        .stale_from = lost.stale_from,
                                        .own_generation = found->generation,
                                        .own_stale_from = found->own_member().stale_from});
  if (verdict != LegVerdict::kStale) co_return false;
  lost.state = State::kCopying;
  lacking_.add(intent_.marks());
  copy_again_ = true;
  env_.trace().record("mirror.leg_back", leg, label().generation);
  co_await bring_up_to_date(leg);
  if (legs_[leg].state == State::kLost) co_return false;
  wake_copier();
  co_return true;
}

// Those above know the units of the legs that were there, which must not get worse.
bool MirrorDrive::fits(const Geometry& shape) const {
  return shape.block_size == label().block_size && shape.blocks >= label().leg_blocks() &&
         shape.transfer_blocks >= geometry_.transfer_blocks &&
         shape.atomic_blocks % geometry_.atomic_blocks == 0 &&
         (!shape.volatile_cache || geometry_.volatile_cache);
}

task::Task<Newcomer> MirrorDrive::meet(std::unique_ptr<Drive>& drive) {
  task::Deadline deadline(env_, env_.now() + kReviveTimeout, closing_.token());
  const Result<MirrorLabel> found =
      co_await judge_label(env_, *drive, {}, read_mirror_label, deadline.token());
  if (!fits(drive->geometry())) co_return Newcomer::kForeign;
  co_return take_in(drive, found, label(), options_.moved, legs_);
}

task::Task<void> MirrorDrive::replace(size_t leg) {
  const bool filled = co_await fill_anew(leg, true);
  (void)filled;  // if not, it is tried again
}

// First every region is marked, durably: a crash after the label names the new leg must find that
// it lacks all.
task::Task<bool> MirrorDrive::fill_anew(size_t leg, bool by_spare) {
  const Result<void> marked = co_await intent_.mark_all();
  if (!marked || legs_[leg].state != State::kLost) co_return false;
  if (by_spare ? legs_.spares.empty() : legs_[leg].has_changed()) co_return false;
  const uint64_t id = env_.rng().next() | 1;
  if (by_spare) {
    legs_.use_spare(leg, id);
  } else {
    legs_.begin_anew(leg, id);
  }
  labels_.note_change();
  lacking_.add_all();
  copy_again_ = true;
  env_.trace().record(by_spare ? "mirror.spare_used" : "mirror.leg_anew", leg, label().generation);
  const Result<void> saved = co_await labels_.save();
  (void)saved;  // it is tried again before the next change completes
  wake_copier();
  co_return true;
}

void MirrorDrive::wake_sweeper() {
  const bool has_work = is_whole() && !has_to_copy() && intent_.marked() > 0;
  if (sweeper_runs_ || closing_.requested() || !has_work) return;
  sweeper_runs_ = true;
  gate().spawn(sweep());
}

task::Task<void> MirrorDrive::sweep() {
  for (;;) {
    const Result<void> slept = co_await task::sleep_for(env_, kSweepEvery, closing_.token());
    if (!slept) break;
    const bool goes_on = co_await unmark_idle(false);
    if (!goes_on || intent_.marked() == 0) break;
  }
  sweeper_runs_ = false;
}

// Takes the marks off regions that nobody changes, once what they hold is durable on every leg.
// False: legs differ, or are missing, and marks say where.
task::Task<bool> MirrorDrive::unmark_idle(bool all) {
  if (!may_forget()) co_return false;
  RegionSet idle = all ? intent_.unchanging() : intent_.idle();
  if (idle.empty()) co_return true;
  const Result<void> flushed = co_await flush({});
  if (!flushed) co_return false;
  co_await intent_.forget(std::move(idle), all);
  co_return may_forget();
}

}  // namespace cairn::drive
