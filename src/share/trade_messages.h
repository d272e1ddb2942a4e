// SPDX-License-Identifier: Apache-2.0
// What a client that has a volume open and the market beside the arbiter say to each other: where
// the drives of its pool stand in the view, what it wants of them, and what it may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "share/auction.h"
#include "share/slice_messages.h"
#include "share/types.h"

namespace cairn::share {

inline constexpr size_t kPlacesMax = 1024;  // drives of a pool

// A volume was opened, or the market is another one than it was.
struct JoinRequest {
  std::string volume;
  std::string client;   // by which it opened the volume
  bool trades = false;  // it asks for slices
};
// A drive of the pool, by its URI.
struct DrivePlace {
  std::string uri;
  DriveId drive;       // in slices
  std::string box;     // in the view, as is the rest
  uint16_t port = 0;   // of the box
  uint16_t index = 0;  // of the box' drives
  friend bool operator==(const DrivePlace&, const DrivePlace&) = default;
};
struct JoinReply {
  uint64_t market = 0;  // which market: another one numbers drives anew
  // Names this opening, and is not told to others: who does not know it cannot trade for it.
  uint64_t ticket = 0;
  std::vector<DrivePlace> places;
};

// What it wants of drives; of none, to learn how they are doing.
struct TradeRequest {
  uint64_t market = 0;
  uint64_t ticket = 0;
  std::vector<SliceRequest> requests;
};
// What the view says of a drive.
struct DriveReport {
  DriveId drive;
  uint32_t write_cost_x10 = 10;
  Duration congestion{};  // how long requests wait there beyond what is usual
  friend bool operator==(const DriveReport&, const DriveReport&) = default;
};
struct TradeReply {
  std::vector<SliceGrant> grants;  // of those that were asked for
  std::vector<DriveReport> drives;
};

struct LeaveRequest {
  uint64_t market = 0;
  uint64_t ticket = 0;
};

}  // namespace cairn::share
