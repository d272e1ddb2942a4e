// SPDX-License-Identifier: Apache-2.0
#include "service/raid/leg_concerns.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace cairn::drive {

namespace {

bool is_failing(const Drive& drive) {
  return std::ranges::any_of(drive.concerns(),
                             [](const Concern& one) { return one.health == Health::kFailing; });
}

}  // namespace

std::vector<Concern> concerns_of(const Legs& legs, const LegNeeds& needs) {
  std::vector<Concern> all;
  size_t usable = 0;
  size_t absent = 0;  // of legs.absent, named already
  for (const Leg& leg : legs) {
    std::optional<size_t> number = legs.number_of(leg.drive.get());
    if (leg.state == Leg::State::kGood && leg.drive != nullptr && !is_failing(*leg.drive)) {
      ++usable;
    }
    if (leg.state == Leg::State::kCopying) {
      all.push_back({.code = "leg_copying",
                     .what = "it lacks data, which is copied to it: until that is done, keep the "
                             "other legs well",
                     .below = number});
    }
    if (leg.state != Leg::State::kLost) continue;
    if (!number && absent < legs.absent.size()) number = legs.absent[absent++].index;
    all.push_back(
        {.code = "leg_lost",
         .what = fmt::format("it failed or is not there; it is tried again every {}, and at once "
                             "when the layer is told 'retry': bring it back, or replace it",
                             text(needs.retry)),
         .below = number});
  }
  for (const size_t number : legs.foreign) {
    all.push_back({.code = "drive_refused",
                   .what = "it came late and holds something else, or is too small for a leg, and "
                           "was left alone: name the right drive, or discard the first 64K of this "
                           "one to make it a spare, and open the stack again",
                   .below = number});
  }
  if (needs.spares > 0 && legs.spares.empty()) {
    all.push_back({.code = "no_spare",
                   .what = "no spare is left: the next leg that is lost stays lost until it is "
                           "replaced"});
  }
  if (usable < needs.good_min) {
    all.insert(all.begin(),
               {.health = Health::kFailing,
                .code = "too_few_legs",
                .what = fmt::format("{} of the {} legs that have all data can be used, and it "
                                    "takes {}: requests fail until legs come back",
                                    usable, legs.count(Leg::State::kGood), needs.good_min)});
  }
  return all;
}

}  // namespace cairn::drive
