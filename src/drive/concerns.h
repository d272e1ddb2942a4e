// SPDX-License-Identifier: Apache-2.0
// What is wrong with a layer, in the words that all services share (Drive::concerns).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "drive/drive.h"
#include "drive/legs.h"

namespace cairn::drive {

// What a redundant service asks of its legs.
struct LegNeeds {
  size_t good_min = 1;  // legs with all data, without which requests fail
  size_t spares = 0;    // that the stack names
  Duration retry;       // how often a lost leg is tried again
};
// Lost legs, those that are copied to, drives that were refused, spares that are used up.
std::vector<Concern> concerns_of(const Legs& legs, const LegNeeds& needs);

// Space that is handed out in units.
struct SpaceUse {
  uint64_t used = 0;
  uint64_t units = 0;
  uint64_t wanted = 0;  // units that the drive above may come to need; no more: it never runs full
  uint64_t free = 0;    // and on their way to be free
  uint64_t needed = 1;  // by one write, at most
  uint64_t warn_percent = 80;
};
std::vector<Concern> concerns_of(const SpaceUse& use);

}  // namespace cairn::drive
