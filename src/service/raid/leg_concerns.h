// SPDX-License-Identifier: Apache-2.0
// What is wrong with a layer's legs, in the words that redundant services share (Drive::concerns).
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "drive/drive.h"
#include "service/raid/legs.h"

namespace cairn::drive {

// What a redundant service asks of its legs.
struct LegNeeds {
  size_t good_min = 1;  // legs with all data, without which requests fail
  size_t spares = 0;    // that the stack names
  Duration retry;       // how often a lost leg is tried again
};
// Lost legs, those that are copied to, drives that were refused, spares that are used up.
std::vector<Concern> concerns_of(const Legs& legs, const LegNeeds& needs);

}  // namespace cairn::drive
