// SPDX-License-Identifier: Apache-2.0
// OwnCounters: how drives are doing, as far as an arbiter can tell by itself: a drive is as busy as
// it got many of the latest extents, for whoever gets an extent is about to write it. Where
// somebody measures drives besides, the worse of both counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "arbiter/placement.h"
#include "arbiter/pool.h"
#include "base/units.h"
#include "task/timer.h"

namespace cairn::arbiter {

class OwnCounters final : public LoadSource {
 public:
  // All outlive it; nobody need measure.
  OwnCounters(const task::Timers& clock, const Pool& pool, const LoadSource* measured = nullptr)
      : clock_(clock), pool_(pool), measured_(measured) {}

  // The drive got an extent.
  void note(volume::MegaVolId id) {
    age();
    recent_[id] += kOne;
  }
  // Somebody moves extents away from it: for a while it counts as busy.
  void avoid(volume::MegaVolId id) { avoided_[id] = clock_.now() + kAvoided; }
  DriveLoad load(volume::MegaVolId id) const override {
    return beside(id, measured_ == nullptr ? DriveLoad{} : measured_->load(id));
  }
  DriveLoad load_for(volume::MegaVolId id, std::string_view volume) const override {
    return beside(id, measured_ == nullptr ? DriveLoad{} : measured_->load_for(id, volume));
  }

 private:
  // Whichever is worse.
  DriveLoad beside(volume::MegaVolId id, const DriveLoad& seen) const {
    const auto member = pool_.members().find(id);
    const auto recent = recent_.find(id);
    uint64_t count = recent == recent_.end() ? 0 : recent->second;
    const auto avoided = avoided_.find(id);
    if (avoided != avoided_.end() && clock_.now() < avoided->second) count = kBusiest;
    const DriveLoad load{
        .busy = static_cast<int32_t>(std::min<uint64_t>(count * 1000 / kBusiest, 1000)),
        .fragmentation =
            member == pool_.members().end() ? 0 : member->second.extents.fragmentation()};
    return {.busy = std::max(load.busy, seen.busy),
            .fragmentation = std::max(load.fragmentation, seen.fragmentation)};
  }

  static constexpr uint64_t kOne = 1024;
  static constexpr uint64_t kBusiest = 256 * kOne;  // extents in about a second: 512 MiB/s
  static constexpr Duration kHalfLife = 1_s;
  static constexpr Duration kAvoided = 60_s;

  void age() {
    while (!recent_.empty() && clock_.now() - aged_ >= kHalfLife) {
      for (auto& [id, count] : recent_) count /= 2;
      std::erase_if(recent_, [](const auto& each) { return each.second == 0; });
      aged_ = aged_ + kHalfLife;
    }
    if (recent_.empty()) aged_ = clock_.now();
  }

  const task::Timers& clock_;
  const Pool& pool_;
  const LoadSource* measured_;
  std::map<volume::MegaVolId, uint64_t> recent_;
  std::map<volume::MegaVolId, Time> avoided_;
  Time aged_;
};

}  // namespace cairn::arbiter
