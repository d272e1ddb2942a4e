// SPDX-License-Identifier: Apache-2.0
// What clients and the auction of bandwidth say to each other.
//
// Each number says how things stand, not what changed: a message that is lost, comes twice or comes
// late neither loses a slice nor doubles one.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "share/types.h"

namespace cairn::share {

inline constexpr Duration kEpoch = 50_ms;
inline constexpr uint64_t kIdleEpochs = 3;  // without a word, and a tenant is idle

struct SliceRequest {
  DriveId drive;
  uint64_t auction = 0;       // whose grants it has; 0: none yet
  uint64_t epoch = 0;         // of these
  uint64_t has = 0;           // that it was granted in it, as far as it knows
  uint64_t given_back = 0;    // of that, for it does nothing
  uint64_t before = 0;        // an epoch of that auction that is over for the client
  uint64_t spent_before = 0;  // weighted bytes that it used, or gave back, of what it got then
  uint64_t now = 0;           // weighted bytes that it wants at once, beyond that
  uint64_t next = 0;          // weighted bytes that it wants in the next epoch
  // Of a thousand weighted bytes, how many it writes and how many it reads.
  uint32_t in_permille = 0;
  uint32_t out_permille = 1000;
  friend bool operator==(const SliceRequest&, const SliceRequest&) = default;
};

struct SliceGrant {
  DriveId drive;
  uint64_t auction = 0;
  uint64_t epoch = 0;
  uint64_t granted = 0;  // weighted bytes for this epoch, all that there were so far
  uint64_t equal = 0;    // what each would have if all that want some had the same
  Duration left{};       // of the epoch
  // It has just started and does not know yet what others have: go on as before.
  bool is_learning = false;
  friend bool operator==(const SliceGrant&, const SliceGrant&) = default;
};

}  // namespace cairn::share
