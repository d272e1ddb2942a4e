// SPDX-License-Identifier: Apache-2.0
#include "arbiter/market/conduct.h"

#include <algorithm>
#include <set>

namespace cairn::arbiter {

using share::DriveId;
using share::TenantId;
using view::Offender;

namespace {
constexpr DriveId kAnyDrive{UINT32_MAX};
}  // namespace

void Conduct::granted(const std::vector<share::Auction::Granted>& all, Time now) {
  for (const share::Auction::Granted& each : all) {
    granted_[{each.tenant, each.drive}].add(now, now, {.bytes = each.weighted});
  }
}

uint64_t Conduct::granted_per_s(TenantId tenant, DriveId drive, Time now) const {
  const auto found = granted_.find({tenant, drive});
  return found == granted_.end() ? 0 : view::per_second(found->second.current(now).bytes);
}

bool Conduct::is_sure(const Key& key, Time now) {
  Suspicion& suspicion = suspicions_[key];
  suspicion.last = now;
  suspicion.looks = std::min(suspicion.looks + 1, kLooks);
  return suspicion.looks == kLooks;
}

void Conduct::look(std::span<const Party> parties, std::span<const Use> uses, Time now) {
  next_look_ = now + kLook;
  offenders_.clear();
  std::map<std::string_view, const Party*> by_volume;
  for (const Party& each : parties) by_volume[each.volume] = &each;
  std::set<std::string_view> seen;
  for (const Use& use : uses) {
    seen.insert(use.volume);
    const auto found = by_volume.find(use.volume);
    if (found == by_volume.end()) continue;
    const Party& party = *found->second;
    // Who is the only one that trades may have all that others leave.
    if (party.trades ? !use.is_auctioned : !use.is_shared) continue;
    const uint64_t granted =
        party.trades ? granted_per_s(party.tenant, use.drive, now) : uint64_t{0};
    const bool is_over = use.weighted > granted + (granted / 2) + kTolerated;
    if (!is_over || !is_sure({use.volume, use.drive}, now)) continue;
    offenders_.push_back({.volume = party.volume,
                          .client = party.client,
                          .offence = party.trades ? Offender::Offence::kTakesMore
                                                  : Offender::Offence::kAsksForNothing,
                          .drive = use.seen_as,
                          .used = use.weighted,
                          .granted = granted});
  }
  for (const Party& party : parties) {
    if (seen.contains(party.volume)) continue;
    // One that was granted nothing has nothing to tell; of one that never joined nobody knows.
    const bool has_some = std::ranges::any_of(granted_, [&](const auto& each) {
      return party.trades && each.first.first == party.tenant && each.second.current(now).bytes > 0;
    });
    if ((party.tells && !has_some) || !is_sure({party.volume, kAnyDrive}, now)) continue;
    offenders_.push_back({.volume = party.volume,
                          .client = party.client,
                          .offence = Offender::Offence::kTellsNothing});
  }
  std::erase_if(suspicions_, [&](const auto& each) { return each.second.last != now; });
  std::erase_if(granted_, [&](const auto& each) { return each.second.is_over(now); });
}

}  // namespace cairn::arbiter
