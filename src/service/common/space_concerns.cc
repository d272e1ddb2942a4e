// SPDX-License-Identifier: Apache-2.0
#include "service/common/space_concerns.h"

#include <fmt/format.h>

namespace cairn::drive {

std::vector<Concern> concerns_of(const SpaceUse& use) {
  if (use.wanted <= use.units) return {};
  if (use.free < use.needed) {
    return {{.health = Health::kFailing,
             .code = "full",
             .what = "the space below is in use, and writes that need more fail: discard what is "
                     "not needed, or make room below"}};
  }
  if (use.used * 100 < use.units * use.warn_percent) return {};
  return {{.code = "nearly_full",
           .what = fmt::format("{} percent of the space below are in use: discard what is not "
                               "needed, or make room below, before writes fail",
                               use.used * 100 / use.units)}};
}

}  // namespace cairn::drive
