// SPDX-License-Identifier: Apache-2.0
// Which offers a drive is made of.
//
// RAID 1 keeps a whole copy on each of several boxes, never two on one. RAID 0 spreads the blocks
// over shelves, of different boxes where there are enough. Each leg takes the offer that fits most
// closely, so that large ones stay whole for those who need them; equal ones by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "rack/types.h"

namespace cairn::rack {

struct Wish {
  Raid raid = Raid::kStripe;
  // Of the whole drive. Requests and bytes per second: a mirror's legs each promise all of them, a
  // stripe's legs their share.
  Amount amount;
  size_t legs = 0;  // up to kLegsMax; 0: two, or of a stripe as many more as it takes
};

// What each leg of such a drive has to be, with room for what a mirror keeps beside the data.
Amount leg_amount(const Wish& wish, size_t legs);

// Indexes of the offers to take, in the order of the legs; or, as a sentence, why there are none. A
// function of its arguments alone, whatever their order; of two offers of one shelf the first
// counts.
std::expected<std::vector<size_t>, std::string> choose(std::span<const Offer> offers,
                                                       const Wish& wish);

}  // namespace cairn::rack
