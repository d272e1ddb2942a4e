// SPDX-License-Identifier: Apache-2.0
#include "volume/copy_on_write.h"

#include <algorithm>
#include <array>
#include <utility>

#include "drive/copy_blocks.h"
#include "drive/scratch.h"
#include "task/deadline.h"

namespace cairn::volume {

using drive::Ranges;
using task::CancelToken;
using task::Task;

namespace {

constexpr uint64_t kWindowBlocks = 64;  // copied at a time
constexpr Duration kCallLimit = 5_s;

constexpr Error kLost{Errc::kDenied, "the lease of the volume is lost"};
constexpr Error kNoPlace{Errc::kUnreachable, "no drive takes the copy of an extent"};

}  // namespace

// Until the extent is the volume's own. Whoever asks holds nothing of it.
Task<Result<void>> CopyOnWrite::unshare(uint32_t extent, CancelToken token) {
  while (parts_.table.is_shared(extent)) {
    if (const Result<void> still = parts_.owner.usable(); !still) co_return still;
    Waiter waiter;
    waiter.extent = extent;
    waiters_.push_back(waiter);
    place_copies();
    const Result<void> waited = co_await waiter.done.wait(token);
    waiter.unlink();
    if (!waited) co_return waited;
    if (!waiter.result) co_return waiter.result;
  }
  co_return Result<void>();
}

void CopyOnWrite::answer(uint32_t extent, const Result<void>& result) {
  waiters_.for_each([&](Waiter& waiter) {
    if (waiter.extent != extent) return;
    waiter.unlink();
    waiter.result = result;
    waiter.done.set();
  });
}

// Extents that somebody waits for and nobody copies, as many as are copied at a time.
std::vector<uint32_t> CopyOnWrite::next_copies() {
  std::vector<uint32_t> extents;
  const size_t room = kCopiesMax - std::min(kCopiesMax, copying_.size());
  waiters_.for_each([&](Waiter& waiter) {
    if (extents.size() < room && !copying_.contains(waiter.extent) &&
        std::ranges::find(extents, waiter.extent) == extents.end()) {
      extents.push_back(waiter.extent);
    }
  });
  std::ranges::sort(extents);
  return extents;
}

void CopyOnWrite::place_copies() {
  if (is_placing_ || parts_.closing.requested()) return;
  is_placing_ = true;
  parts_.gate.spawn(place_some());
}

// One call to the arbiter for all that wait.
Task<void> CopyOnWrite::place_some() {
  for (std::vector<uint32_t> extents = next_copies(); !extents.empty(); extents = next_copies()) {
    std::vector<std::unique_ptr<Ranges::Hold>> holds;
    Result<void> held;
    copying_.insert(extents.begin(), extents.end());
    for (const uint32_t extent : extents) {
      holds.push_back(std::make_unique<Ranges::Hold>(parts_.changing, Ranges::Mode::kExclusive,
                                                     extent, 1, parts_.closing.token()));
      if (held) held = co_await *holds.back();
    }
    Result<std::vector<CopyPlace>> places = fail(kLost);
    if (held) places = co_await ask_for_places(extents);
    for (size_t i = 0; i < extents.size(); ++i) {
      const Result<CopyPlace> place =
          places ? Result<CopyPlace>((*places)[i]) : fail(places.error());
      parts_.gate.spawn(copy_shared(extents[i], place, std::move(holds[i])));
    }
  }
  is_placing_ = false;
}

Task<Result<std::vector<CopyPlace>>> CopyOnWrite::ask_for_places(std::vector<uint32_t> extents) {
  for (;;) {
    if (const Result<void> still = parts_.owner.usable(); !still) co_return fail(still.error());
    task::Deadline deadline(parts_.env, parts_.env.now() + kCallLimit, parts_.closing.token());
    Result<std::vector<CopyPlace>> places =
        co_await parts_.link.begin_copies(parts_.lease.session(), extents, deadline.token());
    if (places) waiting_since_ = Time::never();
    if (places && places->size() == extents.size()) co_return places;
    if (places) co_return fail(Errc::kCorrupt, "the arbiter answers for other extents");
    const Error why = places.error();
    parts_.owner.note_answer(why);
    // Each has what it can get: together they may not fit.
    if (why == Errc::kNoSpace && extents.size() > 1) co_return co_await ask_one_by_one(extents);
    if (why == Errc::kNoSpace || why == Errc::kInvalid) co_return fail(why);
    waiting_since_ = std::min(waiting_since_, parts_.env.now());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(parts_.env, retry_, parts_.closing.token());
  }
}

Task<Result<std::vector<CopyPlace>>> CopyOnWrite::ask_one_by_one(std::vector<uint32_t> extents) {
  std::vector<CopyPlace> all;
  for (const uint32_t extent : extents) {
    const Result<std::vector<CopyPlace>> one = co_await ask_for_places({extent});
    if (one) {
      all.push_back(one->front());
    } else if (one.error() == Errc::kNoSpace) {
      all.push_back({.now = {.extent = extent, .entry = parts_.table[extent], .is_shared = true},
                     .target = {}});
    } else {
      co_return fail(one.error());
    }
  }
  co_return all;
}

Task<void> CopyOnWrite::copy_shared(uint32_t extent, Result<CopyPlace> place,
                                    std::unique_ptr<Ranges::Hold> changing) {
  Result<void> done;
  if (!place) {
    done = fail(place.error());
  } else if (place->target.is_mapped()) {
    done = co_await copy_out(extent, place->target);
  } else if (place->now.is_shared) {
    done = fail(Errc::kNoSpace, "the pool has no room for the copy of an extent");
  } else {
    parts_.table.apply(place->now);
  }
  changing.reset();
  copying_.erase(extent);
  answer(extent, done);
  place_copies();
}

// To the place of the copy, all of it, durably: then the volume's extent is there. Nobody writes
// the extent meanwhile, and nobody else changes where it lies.
Task<Result<void>> CopyOnWrite::copy_out(uint32_t extent, MapEntry target) {
  Result<void> done = co_await parts_.owner.meet_members(target, parts_.closing.token());
  while (done) {
    if (parts_.owner.may_differ(extent))
      done = co_await parts_.owner.equalize(extent, parts_.closing.token());
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
Task<Result<void>> CopyOnWrite::fill_copy(CopyEnd& end) {
  Result<drive::Scratch> memory = drive::Scratch::make(parts_.env, kWindowBlocks * kBlockBytes);
  if (!memory) co_return fail(memory.error());
  const MapEntry target = end.target;
  std::array<uint64_t, kReplicasMax> losses{};
  std::array<bool, kReplicasMax> lacks{};
  for (size_t i = 0; i < target.size(); ++i) {
    const Member* member = parts_.members.find(target.leg(i).mega_vol);
    lacks[i] = member == nullptr || !member->is_good();
    losses[i] = lacks[i] ? 0 : member->losses;
  }
  for (uint64_t at = 0; at < extent_blocks_; at += kWindowBlocks) {
    if (const Result<void> still = parts_.owner.usable(); !still) co_return still;
    const MutableBytes bytes =
        memory->first(std::min(kWindowBlocks, extent_blocks_ - at) * kBlockBytes);
    const Result<void> read =
        co_await parts_.owner.read_blocks(end.extent, at, bytes, parts_.closing.token());
    if (!read) co_return read;
    for (size_t i = 0; i < target.size(); ++i) {
      if (lacks[i]) continue;
      const Result<void> written = co_await write_to_copy(target.leg(i), at, bytes);
      lacks[i] = !written;
    }
  }
  for (size_t i = 0; i < target.size(); ++i) {
    Member* member = parts_.members.find(target.leg(i).mega_vol);
    if (!lacks[i] && member != nullptr) {
      const Result<void> flushed = co_await parts_.owner.flush_one(*member, parts_.closing.token());
      lacks[i] = !flushed;
    }
    lacks[i] = lacks[i] || member == nullptr || member->losses != losses[i];
    end.target.set_stale(i, lacks[i]);
  }
  if (parts_.closing.requested()) co_return fail(Errc::kClosed, "the volume is being closed");
  if (end.target.in_sync() == 0) end.target = {};
  co_return Result<void>();
}

Task<Result<void>> CopyOnWrite::write_to_copy(Leg leg, uint64_t offset, MutableBytes bytes) {
  Member* member = parts_.members.find(leg.mega_vol);
  if (member == nullptr || member->drive == nullptr) co_return fail(kNoPlace);
  const uint64_t scale = kBlockBytes / member->drive->geometry().block_size;
  const drive::Request request{.kind = drive::Request::Kind::kWrite,
                               .lba = Lba((leg.extent * extent_blocks_ + offset) * scale),
                               .blocks = bytes.size() / kBlockBytes * scale};
  const Result<void> done =
      co_await drive::write_copy(*member->drive, request, bytes, parts_.closing.token());
  member->is_dirty = true;
  parts_.members.look(*member);
  if (!done && !parts_.closing.requested()) parts_.members.blame(*member, done.error());
  co_return done;
}

// Nothing may be on its way to legs that others get. False: what was copied may not be what is to
// be read, so it is copied again.
Task<Result<bool>> CopyOnWrite::move_to_copy(CopyEnd end) {
  const uint32_t extent = end.extent;
  bool may_be_done = false;
  while (!parts_.closing.requested()) {
    Ranges::Hold hold(parts_.ranges, Ranges::Mode::kExclusive,
                      (extent - kFirstDataExtent) * extent_blocks_, extent_blocks_,
                      parts_.closing.token());
    const Result<void> held = co_await hold;
    if (!held) co_return fail(held.error());
    if (parts_.owner.may_differ(extent)) co_return false;
    do {
      if (!parts_.lease.is_held()) co_return fail(kLost);
      task::Deadline deadline(parts_.env, parts_.env.now() + kCallLimit, parts_.closing.token());
      const Result<std::vector<Mapping>> moved =
          co_await parts_.link.end_copies(parts_.lease.session(), {end}, deadline.token());
      if (moved && !moved->empty()) {
        waiting_since_ = Time::never();
        if (end.target.is_mapped()) parts_.table.forget(extent);
        parts_.table.apply(moved->front());
        parts_.owner.copy_ended(extent, end.target.is_mapped());
        co_return true;
      }
      if (!moved) parts_.owner.note_answer(moved.error());
      may_be_done |= !moved && moved.error() != Errc::kUnreachable;
      waiting_since_ = std::min(waiting_since_, parts_.env.now());
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(parts_.env, retry_, parts_.closing.token());
    } while (may_be_done && !parts_.closing.requested());
  }
  co_return fail(Errc::kClosed, "the volume is being closed");
}

}  // namespace cairn::volume
