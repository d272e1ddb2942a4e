// SPDX-License-Identifier: Apache-2.0
// What is wrong with a layer's space, in the words that all services share (Drive::concerns).
#pragma once

#include <cstdint>
#include <vector>

#include "drive/drive.h"

namespace cairn::drive {

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
