// SPDX-License-Identifier: Apache-2.0
// Conduct: who keeps to its slices, and who does not. No I/O.
//
// What the auction granted is held against what the view counted, over the view's own window. Who
// uses much more than it was granted of a drive that others want too, for a second on end, does not
// keep to its slices; nor does who uses such a drive and asks for none. Who has a volume open and
// tells nothing of its requests cannot be judged, and is named for that.
//
// A client tells of its requests itself: one that tells of fewer than it sends is not found here.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "share/auction.h"
#include "share/types.h"
#include "view/sliding.h"
#include "view/view.h"

namespace cairn::arbiter {

class Conduct {
 public:
  // Conduct is judged so often, and is what it was so many times in a row.
  static constexpr Duration kLook = view::kWindow;
  static constexpr uint32_t kLooks = 5;
  // More than it was granted by half, and by so much in a second: requests that were lent their
  // room, and drives whose writes became harder meanwhile, are neither.
  static constexpr uint64_t kTolerated = 2'500'000;

  // What was granted in the epoch that ends now.
  void granted(const std::vector<share::Auction::Granted>& all, Time now);

  // One that has a volume open.
  struct Party {
    std::string volume;
    std::string client;
    share::TenantId tenant;  // if it trades
    bool trades = false;
    bool tells = false;  // it joined, so that it could tell of its requests
  };
  // What it uses of a drive, in weighted bytes a second.
  struct Use {
    std::string volume;
    share::DriveId drive;
    view::ComponentId seen_as;
    uint64_t weighted = 0;
    bool is_shared = false;     // somebody else uses the drive
    bool is_auctioned = false;  // of those who trade, several want something of it
  };
  bool is_due(Time now) const { return now >= next_look_; }
  void look(std::span<const Party> parties, std::span<const Use> uses, Time now);

  // By volume and drive.
  const std::vector<view::Offender>& offenders() const { return offenders_; }

 private:
  struct Bytes {
    uint64_t bytes = 0;
    Bytes& operator+=(const Bytes& other) { return bytes += other.bytes, *this; }
  };
  using Key = std::pair<std::string, share::DriveId>;  // of a volume; no drive: of all
  struct Suspicion {
    uint32_t looks = 0;
    Time last{};
  };
  // Whether it was so at the last kLooks looks.
  bool is_sure(const Key& key, Time now);
  uint64_t granted_per_s(share::TenantId tenant, share::DriveId drive, Time now) const;

  std::map<std::pair<share::TenantId, share::DriveId>, view::Sliding<Bytes>> granted_;
  std::map<Key, Suspicion> suspicions_;
  std::vector<view::Offender> offenders_;
  Time next_look_{};
};

}  // namespace cairn::arbiter
