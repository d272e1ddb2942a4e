// SPDX-License-Identifier: Apache-2.0
// What legs lack, and what is made equal again.
#include "volume/volume_drive.h"

namespace cairn::volume {

using drive::RegionSet;
using task::CancelToken;
using task::Task;

void VolumeDrive::distrust(uint32_t extent, MegaVolId mega_vol) {
  must_heal(extent);
  if (table_.distrust(extent, mega_vol)) reporter_.start();
}

void VolumeDrive::note_answer(const Error& error) {
  if (error == Errc::kDenied || error == Errc::kNotFound) lease_->lose();
}

// Whether a drive that answers has all of the extent besides this one.
bool VolumeDrive::has_other(uint32_t extent, MegaVolId mega_vol) const {
  const MapEntry& entry = table_[extent];
  for (size_t i = 0; i < entry.size(); ++i) {
    const MegaVolId other = entry.leg(i).mega_vol;
    const auto member = members_.all().find(other);
    if (other != mega_vol && table_.is_trusted(extent, other) && member != members_.all().end() &&
        member->second->is_good()) {
      return true;
    }
  }
  return false;
}

// Without copies: whether the drive has the only leg of some extent.
bool VolumeDrive::has_only_leg(MegaVolId mega_vol) const {
  for (uint32_t extent = kFirstDataExtent; extent < table_.extents(); ++extent) {
    if (table_.is_trusted(extent, mega_vol) && !has_other(extent, mega_vol)) return true;
  }
  return false;
}

// Of extents that are marked, the drive may lack any write since its last flush. Others have them,
// or they are lost and the next flush says so.
void VolumeDrive::member_lost_writes(Member& member) {
  // What was copied from it, or to it, may not be what is there now.
  if (copying_ && table_[copying_->extent].find(member.info.id) < table_[copying_->extent].size()) {
    copying_->has_failed = true;
  }
  if (intents_ == nullptr) {
    // The drive itself may have told it to a flush that was the volume's own, or may be another
    // object by now, which knows nothing of it.
    if (is_begun_ && member.is_dirty && has_only_leg(member.info.id)) losses_.add();
    return;
  }
  bool has_lost = false;
  const RegionSet& marks = intents_->marks();
  for (size_t region = marks.next(0); region < marks.size(); region = marks.next(region + 1)) {
    const uint64_t end = std::min<uint64_t>((region + 1) * region_extents_, table_.extents());
    for (uint64_t i = region * region_extents_; i < end; ++i) {
      const auto extent = static_cast<uint32_t>(i);
      const MapEntry& entry = table_[extent];
      const size_t leg = entry.find(member.info.id);
      // The log itself is written durably.
      if (extent == kLogExtent || leg == entry.size()) continue;
      if (!table_.is_trusted(extent, member.info.id)) continue;
      if (has_other(extent, member.info.id)) {
        distrust(extent, member.info.id);
      } else {
        has_lost = true;
        if (table_.trusted(extent) > 1) must_equalize(extent);
      }
    }
  }
  if (has_lost) losses_.add();
}

void VolumeDrive::member_changed(Member& member) {
  // Legs of a drive that is lost are found when it has been away for long enough.
  if (member.state == Member::State::kGone) find_work();
  heal_moved_.set();
  heal_moved_.reset();
}

Task<Result<void>> VolumeDrive::confirm(CancelToken token) {
  co_return co_await lease_->confirm(token);
}

Task<Result<void>> VolumeDrive::save_intents(Bytes record, uint64_t slot) {
  const MutableBytes piece{const_cast<std::byte*>(record.data()), record.size()};
  const Part part{.extent = kLogExtent, .offset = slot, .blocks = 1};
  const Request request{.kind = Request::Kind::kWrite, .durable = true, .metadata = true};
  co_return co_await write_chain(part, request, {&piece, 1}, {});
}

bool VolumeDrive::has_unequal(uint64_t region) const {
  const size_t found = unequal_.next(region * region_extents_);
  return found < std::min<uint64_t>((region + 1) * region_extents_, unequal_.size());
}

void VolumeDrive::must_equalize(uint32_t extent) {
  unequal_.add(extent);
  must_heal(extent);
}

}  // namespace cairn::volume
