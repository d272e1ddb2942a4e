// SPDX-License-Identifier: Apache-2.0
// What extents lack they get in the background, those with least redundancy first: legs that lack
// writes are copied to, legs on drives that are lost or leave go to others.
#include <algorithm>
#include <utility>

#include "task/deadline.h"
#include "volume/volume_drive.h"

namespace cairn::volume {

using task::Task;

namespace {

constexpr Duration kCallLimit = 5_s;

}  // namespace

bool VolumeDrive::is_lost(const Member* member) const {
  if (member == nullptr || member->state == Member::State::kGone) return true;
  if (member->state != Member::State::kAway) return false;
  // Who has it leave the pool does not wait for it either.
  if (member->info.is_leaving && !member->is_barred) return true;
  return env_.now() - member->away_since >= options_.rebuild_after ||
         std::ranges::find(options_.lost, member->info.id) != options_.lost.end();
}

bool VolumeDrive::needs_healing(uint32_t extent) const {
  const MapEntry& entry = table_[extent];
  if (!entry.is_mapped()) return false;
  if (extent == kLogExtent && intents_ == nullptr) return true;
  if (entry.size() != replicas_ || unequal_.has(extent)) return true;
  for (size_t i = 0; i < entry.size(); ++i) {
    const Leg leg = entry.leg(i);
    const auto member = members_.all().find(leg.mega_vol);
    if (!table_.is_trusted(extent, leg.mega_vol) || member == members_.all().end() ||
        member->second->info.is_leaving || is_lost(member->second.get())) {
      return true;
    }
  }
  return false;
}

void VolumeDrive::find_work() {
  for (uint32_t extent = 0; extent < table_.extents(); ++extent) {
    if (needs_healing(extent)) must_heal(extent);
  }
}

void VolumeDrive::must_heal(uint32_t extent) {
  heal_.add(extent);
  heal_moved_.set();
  heal_moved_.reset();
  if (healer_runs_ || !is_begun_ || closing_.requested()) return;
  healer_runs_ = true;
  gate_.spawn(heal());
}

// Passes over what there is to heal until nothing is, or nothing can be done for a while.
Task<void> VolumeDrive::heal() {
  // Never inside the call that found work.
  Result<void> waited = co_await task::sleep_for(env_, 1_us, closing_.token());
  while (waited && lease_->is_held() && !heal_.empty()) {
    lacks_space_ = false;
    bool has_moved = co_await heal_pass(true);
    if (!has_moved) has_moved = co_await heal_pass(false);
    if (has_moved) continue;
    // A drive that comes back is looked at then; what failed is tried again.
    task::Deadline soon(env_, env_.now() + options_.retry);
    [[maybe_unused]] const Result<void> moved = co_await heal_moved_.wait(soon.token());
    if (closing_.requested()) break;
  }
  if (heal_.empty()) healed_ = 0;
  healer_runs_ = false;
}

// Over extents that one more loss would end, or over all. True: something was done.
Task<bool> VolumeDrive::heal_pass(bool urgent) {
  bool has_moved = false;
  for (size_t i = heal_.next(0); i < heal_.size(); i = heal_.next(i + 1)) {
    const auto extent = static_cast<uint32_t>(i);
    if (closing_.requested() || !lease_->is_held()) co_return false;
    if (urgent && (replicas_ == 1 || table_.trusted(extent) > 1)) continue;
    Step step = Step::kMore;
    while (step == Step::kMore && !closing_.requested()) {
      drive::Ranges::Hold changing(changing_, drive::Ranges::Mode::kExclusive, extent, 1,
                                   closing_.token());
      const Result<void> held = co_await changing;
      if (!held) co_return false;
      step = co_await heal_extent(extent);
      has_moved |= step != Step::kWait;
    }
    if (step == Step::kDone && !needs_healing(extent)) {
      heal_.remove(extent);
      ++healed_;
    }
  }
  co_return has_moved;
}

Task<VolumeDrive::Step> VolumeDrive::heal_extent(uint32_t extent) {
  if (unequal_.has(extent)) {
    const Result<void> equal = co_await equalize(extent, closing_.token());
    co_return equal ? Step::kMore : Step::kWait;
  }
  const MapEntry entry = table_[extent];
  if (!entry.is_mapped()) co_return Step::kDone;
  if (extent == kLogExtent && intents_ == nullptr) {
    // Of a volume that had copies before.
    const Result<void> released = co_await release(extent, closing_.token());
    co_return released ? Step::kMore : Step::kWait;
  }
  const Result<void> met = co_await meet_members(entry, closing_.token());
  if (!met) co_return Step::kWait;
  bool must_wait = false;
  for (size_t i = 0; i < entry.size(); ++i) {
    const Step step = co_await heal_leg(extent, entry.leg(i));
    if (step == Step::kMore) co_return step;
    must_wait |= step == Step::kWait;
  }
  if (must_wait) co_return Step::kWait;
  if (entry.size() > replicas_) {
    const std::optional<MegaVolId> drop = surplus(extent, {});
    if (drop) co_return co_await relocate({.extent = extent, .drop = drop});
  }
  if (entry.size() < replicas_) co_return co_await relocate({.extent = extent, .add = true});
  co_return Step::kDone;
}

// kDone: nothing is to be done about this leg.
Task<VolumeDrive::Step> VolumeDrive::heal_leg(uint32_t extent, Leg leg) {
  Member* member = members_.find(leg.mega_vol);
  const MapEntry& entry = table_[extent];
  const bool is_trusted = table_.is_trusted(extent, leg.mega_vol);
  // Told to the arbiter first: only what it knows to be stale may be said to be in order again.
  if (!is_trusted && !leg.is_stale) co_return Step::kWait;
  if (is_lost(member)) {
    if (!has_other(extent, leg.mega_vol)) co_return Step::kWait;
    co_return co_await relocate(
        {.extent = extent, .drop = leg.mega_vol, .add = entry.size() <= replicas_});
  }
  if (leg.is_stale) {
    if (!member->is_good()) co_return Step::kWait;
    co_return co_await resync(extent, leg);
  }
  if (!member->info.is_leaving || entry.size() > replicas_) co_return Step::kDone;
  // An extent of three legs has no room for a fourth: it has two while it moves.
  if (entry.size() < kReplicasMax) co_return co_await relocate({.extent = extent, .add = true});
  co_return co_await relocate({.extent = extent, .drop = leg.mega_vol, .add = true});
}

// Which leg may go when an extent has more than it should: one that leaves or is lost, else one
// that is stale, else the tail; never `keep`.
std::optional<MegaVolId> VolumeDrive::surplus(uint32_t extent,
                                              std::optional<MegaVolId> keep) const {
  const MapEntry& entry = table_[extent];
  std::optional<MegaVolId> found;
  if (entry.size() <= replicas_) return found;
  uint32_t best = 0;
  for (size_t i = 0; i < entry.size(); ++i) {
    const Leg leg = entry.leg(i);
    const auto at = members_.all().find(leg.mega_vol);
    const Member* member = at == members_.all().end() ? nullptr : at->second.get();
    uint32_t rank = 1;
    if (!table_.is_trusted(extent, leg.mega_vol)) rank = 2;
    if (is_lost(member) || member->info.is_leaving) rank = 3;
    if (leg.mega_vol == keep || rank < best) continue;
    best = rank;
    found = leg.mega_vol;
  }
  return found;
}

Task<VolumeDrive::Step> VolumeDrive::relocate(Relocation what) {
  if (what.drop) {
    // Nothing may be on its way to a leg that somebody else gets.
    const uint64_t first = what.extent == kLogExtent ? 0 : first_block(what.extent);
    const uint64_t count = what.extent == kLogExtent ? 0 : extent_blocks_;
    drive::Ranges::Hold hold(ranges_, drive::Ranges::Mode::kExclusive, first, count,
                             closing_.token());
    const Result<void> held = co_await hold;
    if (!held) co_return Step::kWait;
    const bool is_trusted = table_.is_trusted(what.extent, *what.drop);
    if (is_trusted && !has_other(what.extent, *what.drop)) co_return Step::kWait;
    if (is_trusted) distrust(what.extent, *what.drop);
  }
  if (what.drop && what.extent == kLogExtent) {
    // Records are not held by their blocks, but written one after the other: the next one is the
    // first that leaves the leg out.
    const Result<void> rewritten = co_await log_.rewrite();
    if (!rewritten) co_return Step::kWait;
  }
  if (intents_ == nullptr && what.add) {
    // Those who write one leg, with others and from memory that changes, end first.
    splitting_ = what.extent;
    drive::Ranges::Hold hold(ranges_, drive::Ranges::Mode::kExclusive, first_block(what.extent),
                             extent_blocks_, closing_.token());
    const Result<void> held = co_await hold;
    if (!held) splitting_.reset();
    if (!held) co_return Step::kWait;
  }
  const Step step = co_await ask_to_relocate(what);
  splitting_.reset();
  co_return step;
}

Task<VolumeDrive::Step> VolumeDrive::ask_to_relocate(Relocation what) {
  while (lease_->is_held() && !closing_.requested()) {
    task::Deadline deadline(env_, env_.now() + kCallLimit, closing_.token());
    const Result<Mapping> moved = co_await link_.relocate(session(), what, deadline.token());
    if (moved) {
      table_.apply(*moved);
      if (what.drop) ++counters_.relocated;
      co_return Step::kMore;
    }
    note_answer(moved.error());
    lacks_space_ |= moved.error() == Errc::kNoSpace;
    if (moved.error() != Errc::kTimedOut && moved.error() != Errc::kReset) break;
    // It may have been done: a leg that was dropped is not touched, and asking again does no harm.
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.allocator.retry, closing_.token());
  }
  co_return Step::kWait;
}

}  // namespace cairn::volume
