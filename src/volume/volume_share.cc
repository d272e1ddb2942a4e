// SPDX-License-Identifier: Apache-2.0
// What snapshots and clones share with the volume: writes stop for a moment while a snapshot is
// made, and an extent that others have too is copied before it is written.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "drive/copy_blocks.h"
#include "task/deadline.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using drive::Ranges;
using task::CancelToken;
using task::Task;

namespace {

constexpr uint64_t kWindowBlocks = 64;  // copied at a time
constexpr Duration kCallLimit = 5_s;
// How long requests wait for a snapshot at most: until all is durable, and for the arbiter. It goes
// on without them if it takes longer.
constexpr Duration kPauseLimit = 5_s;
constexpr Duration kFreezeLimit = 3_s;
constexpr uint64_t kEverything = std::numeric_limits<uint64_t>::max() / 2;

constexpr Error kLost{Errc::kDenied, "the lease of the volume is lost"};
constexpr Error kNoPlace{Errc::kUnreachable, "no drive takes the copy of an extent"};

}  // namespace

// Asks what operators want of this volume, and does it.
Task<void> VolumeDrive::attend() {
  while (lease_->is_held() && !closing_.requested()) {
    const Time began = env_.now();
    bool is_good = false;
    {
      task::Deadline deadline(env_, began + options_.listen + kCallLimit, closing_.token());
      const Result<Asked> asked =
          co_await link_.asked(session(), options_.listen, deadline.token());
      if (!asked) note_answer(asked.error());
      is_good = asked && (!asked->snapshot.empty() || env_.now() - began >= options_.listen / 2);
      if (asked && !asked->snapshot.empty()) is_good = co_await freeze(asked->snapshot);
    }
    if (is_good) continue;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.retry, closing_.token());
  }
}

// True: the arbiter has heard what came of it.
Task<bool> VolumeDrive::freeze(std::string snapshot) {
  task::Deadline deadline(env_, env_.now() + options_.open_limit, closing_.token());
  // What can be done before anybody has to wait.
  Result<void> ready = co_await flush_members(deadline.token());
  while (ready) {
    ready = co_await equalize_all(deadline.token());
    if (!ready) break;
    task::Deadline pause(env_, env_.now() + kPauseLimit, deadline.token());
    Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, 0, kEverything, pause.token());
    ready = co_await hold;
    if (ready && !unequal_.empty()) continue;
    if (ready) ready = co_await make_durable(pause.token());
    if (!ready) break;
    // Also those whose mapping is on its way here: it was sent before the arbiter was asked.
    table_.share_all();
    const Result<void> made = co_await ask_to_freeze(snapshot, true);
    table_.share_all();
    if (!made) note_answer(made.error());
    counters_.snapshots += made ? 1 : 0;
    co_return made.has_value();
  }
  if (closing_.requested() || !lease_->is_held()) co_return false;
  const Result<void> told = co_await ask_to_freeze(snapshot, false);
  co_return told.has_value();
}

Task<Result<void>> VolumeDrive::ask_to_freeze(std::string snapshot, bool is_ready) {
  task::Deadline deadline(env_, env_.now() + kFreezeLimit, closing_.token());
  co_return co_await link_.freeze(session(), std::move(snapshot), is_ready, deadline.token());
}

Task<Result<void>> VolumeDrive::equalize_all(CancelToken token) {
  for (size_t i = unequal_.next(0); i < unequal_.size(); i = unequal_.next(i + 1)) {
    const Result<void> equal = co_await equalize(static_cast<uint32_t>(i), token);
    if (!equal) co_return equal;
  }
  co_return Result<void>();
}

// While nobody writes: every leg that the arbiter knows to be in order has all that was written,
// for good.
Task<Result<void>> VolumeDrive::make_durable(CancelToken token) {
  Result<void> done = co_await flush_members(token);
  if (done) done = co_await reporter_.known(token);
  if (done) done = usable();
  // What was lost and no flush has told yet was acknowledged.
  if (done && (losses_.count() != losses_.told() || !unequal_.empty())) {
    done = fail(Errc::kIo, "a drive lost what was not flushed");
  }
  co_return done;
}

// Until the extent is the volume's own. Whoever asks holds nothing of it.
Task<Result<void>> VolumeDrive::unshare(uint32_t extent, CancelToken token) {
  while (table_.is_shared(extent)) {
    if (const Result<void> still = usable(); !still) co_return still;
    Sharer sharer;
    sharer.extent = extent;
    sharers_.push_back(sharer);
    place_copies();
    const Result<void> waited = co_await sharer.done.wait(token);
    sharer.unlink();
    if (!waited) co_return waited;
    if (!sharer.result) co_return sharer.result;
  }
  co_return Result<void>();
}

void VolumeDrive::answer_sharers(uint32_t extent, const Result<void>& result) {
  sharers_.for_each([&](Sharer& sharer) {
    if (sharer.extent != extent) return;
    sharer.unlink();
    sharer.result = result;
    sharer.done.set();
  });
}

// Extents that somebody waits for and nobody copies, as many as are copied at a time.
std::vector<uint32_t> VolumeDrive::next_copies() {
  std::vector<uint32_t> extents;
  const size_t room = kCopiesMax - std::min(kCopiesMax, copying_out_.size());
  sharers_.for_each([&](Sharer& sharer) {
    if (extents.size() < room && !copying_out_.contains(sharer.extent) &&
        std::ranges::find(extents, sharer.extent) == extents.end()) {
      extents.push_back(sharer.extent);
    }
  });
  std::ranges::sort(extents);
  return extents;
}

void VolumeDrive::place_copies() {
  if (is_placing_ || closing_.requested()) return;
  is_placing_ = true;
  gate_.spawn(place_some());
}

// One call to the arbiter for all that wait.
Task<void> VolumeDrive::place_some() {
  for (std::vector<uint32_t> extents = next_copies(); !extents.empty(); extents = next_copies()) {
    std::vector<std::unique_ptr<Ranges::Hold>> holds;
    Result<void> held;
    copying_out_.insert(extents.begin(), extents.end());
    for (const uint32_t extent : extents) {
      holds.push_back(std::make_unique<Ranges::Hold>(changing_, Ranges::Mode::kExclusive, extent, 1,
                                                     closing_.token()));
      if (held) held = co_await *holds.back();
    }
    Result<std::vector<CopyPlace>> places = fail(kLost);
    if (held) places = co_await ask_for_places(extents);
    for (size_t i = 0; i < extents.size(); ++i) {
      const Result<CopyPlace> place =
          places ? Result<CopyPlace>((*places)[i]) : fail(places.error());
      gate_.spawn(copy_shared(extents[i], place, std::move(holds[i])));
    }
  }
  is_placing_ = false;
}

Task<Result<std::vector<CopyPlace>>> VolumeDrive::ask_for_places(std::vector<uint32_t> extents) {
  for (;;) {
    if (const Result<void> still = usable(); !still) co_return fail(still.error());
    task::Deadline deadline(env_, env_.now() + kCallLimit, closing_.token());
    Result<std::vector<CopyPlace>> places =
        co_await link_.begin_copies(session(), extents, deadline.token());
    if (places) copies_wait_since_ = Time::never();
    if (places && places->size() == extents.size()) co_return places;
    if (places) co_return fail(Errc::kCorrupt, "the arbiter answers for other extents");
    const Error why = places.error();
    note_answer(why);
    // Each has what it can get: together they may not fit.
    if (why == Errc::kNoSpace && extents.size() > 1) co_return co_await ask_one_by_one(extents);
    if (why == Errc::kNoSpace || why == Errc::kInvalid) co_return fail(why);
    copies_wait_since_ = std::min(copies_wait_since_, env_.now());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.allocator.retry, closing_.token());
  }
}

Task<Result<std::vector<CopyPlace>>> VolumeDrive::ask_one_by_one(std::vector<uint32_t> extents) {
  std::vector<CopyPlace> all;
  for (const uint32_t extent : extents) {
    const Result<std::vector<CopyPlace>> one = co_await ask_for_places({extent});
    if (one) {
      all.push_back(one->front());
    } else if (one.error() == Errc::kNoSpace) {
      all.push_back(
          {.now = {.extent = extent, .entry = table_[extent], .is_shared = true}, .target = {}});
    } else {
      co_return fail(one.error());
    }
  }
  co_return all;
}

Task<void> VolumeDrive::copy_shared(uint32_t extent, Result<CopyPlace> place,
                                    std::unique_ptr<Ranges::Hold> changing) {
  Result<void> done;
  if (!place) {
    done = fail(place.error());
  } else if (place->target.is_mapped()) {
    done = co_await copy_out(extent, place->target);
  } else if (place->now.is_shared) {
    done = fail(Errc::kNoSpace, "the pool has no room for the copy of an extent");
  } else {
    table_.apply(place->now);
  }
  changing.reset();
  copying_out_.erase(extent);
  answer_sharers(extent, done);
  place_copies();
}

// To the place of the copy, all of it, durably: then the volume's extent is there. Nobody writes
// the extent meanwhile, and nobody else changes where it lies.
Task<Result<void>> VolumeDrive::copy_out(uint32_t extent, MapEntry target) {
  Result<void> done = co_await meet_members(target, closing_.token());
  while (done) {
    if (unequal_.has(extent)) done = co_await equalize(extent, closing_.token());
    if (!done) break;
    CopyEnd end{.extent = extent, .target = target};
    done = co_await fill_copy(end);
    if (!done) break;
    const bool is_given_up = !end.target.is_mapped();
    const Result<bool> moved = co_await move_to_copy(std::move(end));
    if (!moved) done = fail(moved.error());
    if (moved && is_given_up) done = fail(kNoPlace);
    if (!moved || *moved) break;
  }
  co_return done;
}

// Legs that failed are stale then; if all did, it has no legs.
Task<Result<void>> VolumeDrive::fill_copy(CopyEnd& end) {
  Result<drive::Scratch> memory = drive::Scratch::make(env_, kWindowBlocks * kBlockBytes);
  if (!memory) co_return fail(memory.error());
  const MapEntry target = end.target;
  std::array<uint64_t, kReplicasMax> losses{};
  std::array<bool, kReplicasMax> lacks{};
  for (size_t i = 0; i < target.size(); ++i) {
    const Member* member = members_.find(target.leg(i).mega_vol);
    lacks[i] = member == nullptr || !member->is_good();
    losses[i] = lacks[i] ? 0 : member->losses;
  }
  for (uint64_t at = 0; at < extent_blocks_; at += kWindowBlocks) {
    if (const Result<void> still = usable(); !still) co_return still;
    const Part part{
        .extent = end.extent, .offset = at, .blocks = std::min(kWindowBlocks, extent_blocks_ - at)};
    const MutableBytes bytes = memory->first(part.blocks * kBlockBytes);
    const Result<void> read = co_await read_part(part, {}, {&bytes, 1}, closing_.token());
    if (!read) co_return read;
    for (size_t i = 0; i < target.size(); ++i) {
      if (lacks[i]) continue;
      const Result<void> written = co_await write_to_copy(target.leg(i), part, bytes);
      lacks[i] = !written;
    }
  }
  for (size_t i = 0; i < target.size(); ++i) {
    Member* member = members_.find(target.leg(i).mega_vol);
    if (!lacks[i] && member != nullptr) {
      drive::Join join;
      join.add();
      co_await flush_member(*member, closing_.token(), join);
      const Result<void> flushed = co_await join.all();
      lacks[i] = !flushed;
    }
    lacks[i] = lacks[i] || member == nullptr || member->losses != losses[i];
    end.target.set_stale(i, lacks[i]);
  }
  if (closing_.requested()) co_return fail(Errc::kClosed, "the volume is being closed");
  if (end.target.in_sync() == 0) end.target = {};
  co_return Result<void>();
}

Task<Result<void>> VolumeDrive::write_to_copy(Leg leg, Part part, MutableBytes bytes) {
  Member* member = members_.find(leg.mega_vol);
  if (member == nullptr || member->drive == nullptr) co_return fail(kNoPlace);
  const uint64_t scale = kBlockBytes / member->drive->geometry().block_size;
  const Request request{.kind = Request::Kind::kWrite,
                        .lba = Lba((leg.extent * extent_blocks_ + part.offset) * scale),
                        .blocks = part.blocks * scale};
  const Result<void> done =
      co_await drive::write_copy(*member->drive, request, bytes, closing_.token());
  member->is_dirty = true;
  members_.look(*member);
  if (!done && !closing_.requested()) members_.blame(*member, done.error());
  co_return done;
}

// Nothing may be on its way to legs that others get. False: what was copied may not be what is to
// be read, so it is copied again.
Task<Result<bool>> VolumeDrive::move_to_copy(CopyEnd end) {
  const uint32_t extent = end.extent;
  bool may_be_done = false;
  while (!closing_.requested()) {
    Ranges::Hold hold(ranges_, Ranges::Mode::kExclusive, first_block(extent), extent_blocks_,
                      closing_.token());
    const Result<void> held = co_await hold;
    if (!held) co_return fail(held.error());
    if (unequal_.has(extent)) co_return false;
    do {
      if (!lease_->is_held()) co_return fail(kLost);
      task::Deadline deadline(env_, env_.now() + kCallLimit, closing_.token());
      const Result<std::vector<Mapping>> moved =
          co_await link_.end_copies(session(), {end}, deadline.token());
      if (moved && !moved->empty()) {
        copies_wait_since_ = Time::never();
        if (end.target.is_mapped()) {
          table_.forget(extent);
          ++counters_.unshared;
        }
        table_.apply(moved->front());
        if (needs_healing(extent)) must_heal(extent);
        co_return true;
      }
      if (!moved) note_answer(moved.error());
      may_be_done |= !moved && moved.error() != Errc::kUnreachable;
      copies_wait_since_ = std::min(copies_wait_since_, env_.now());
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(env_, options_.allocator.retry, closing_.token());
    } while (may_be_done && !closing_.requested());
  }
  co_return fail(Errc::kClosed, "the volume is being closed");
}

}  // namespace cairn::volume
