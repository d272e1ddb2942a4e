// SPDX-License-Identifier: Apache-2.0
#include "service/raid/leg.h"

namespace cairn::drive {

bool Leg::has_changed() const {
  if (drive == nullptr) return false;
  const Incarnation now = drive->incarnation();
  return now.opening != 0 && now != known;
}

LegVerdict judge_leg(const LegClaims& claims) {
  if (claims.stale_from == 0) {
    // One label may be missing: that of a crash between two legs.
    return claims.own_generation + 1 >= claims.newest_generation ? LegVerdict::kGood
                                                                 : LegVerdict::kMissedLabels;
  }
  const bool went_on = claims.own_stale_from == 0 && claims.own_generation >= claims.stale_from;
  return went_on ? LegVerdict::kSplitBrain : LegVerdict::kStale;
}

bool blames_leg(const Error& error) {
  switch (error.code()) {
    case Errc::kIo:
    case Errc::kCorrupt:
    case Errc::kNoSpace:
    case Errc::kClosed:
    case Errc::kReset:
    case Errc::kUnreachable:
    case Errc::kTimedOut:
    case Errc::kNotFound:
    case Errc::kDenied:
      return true;
    default:
      return false;
  }
}

}  // namespace cairn::drive
