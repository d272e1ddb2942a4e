// SPDX-License-Identifier: Apache-2.0
// Which block the collector takes next: the policies.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "model/flash/mrg32k3a.h"
#include "model/flash/shared.h"

namespace cairn::flash {

class Victims {
 public:
  explicit Victims(Shared& shared);

  // The block of the plane to collect, by the drive's policy, or kNone. Some policies may come upon
  // one that is not worth it: see Collector::check().
  uint32_t choose(uint32_t plane);
  // The block with the most garbage.
  uint32_t greedy(uint32_t plane);
  // The block whose data is moved so that it takes its part of the wear, or kNone while wear is
  // even enough.
  uint32_t too_cold(uint32_t plane) const;

  // How many blocks randomised greedy looks at.
  uint32_t choices() const { return choices_; }

 private:
  uint32_t reference_greedy(uint32_t plane);
  uint32_t among_random(uint32_t plane);
  uint32_t random(uint32_t plane, uint32_t invalid_min, bool full_only);
  uint32_t oldest(uint32_t plane);
  uint64_t draw(uint64_t bound) {
    return quirks_.draws_by_own_generator() ? reference_rng_.between(0, bound - 1)
                                            : rng_.below(bound);
  }

  const Parameters& parameters_;
  const Quirks quirks_;
  const Geometry& geometry_;
  const Reserve& reserve_;
  Blocks& blocks_;

  Rng rng_;
  Mrg32k3a reference_rng_;
  const uint32_t choices_;
};

}  // namespace cairn::flash
