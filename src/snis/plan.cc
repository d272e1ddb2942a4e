// SPDX-License-Identifier: Apache-2.0
#include "snis/plan.h"

#include <algorithm>

namespace cairn::snis {

namespace {

// The smallest number from `low` to `high` that is enough; `high` is known to be.
uint32_t min_enough(uint32_t low, uint32_t high, const std::function<bool(uint32_t)>& enough) {
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (enough(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

class Search {
 public:
  Search(const PlanLimits& limits, double p99_ns_max,
         const std::function<Trial(const Hardware&)>& simulate)
      : limits_(limits), p99_ns_max_(p99_ns_max), simulate_(simulate) {}

  Plan run() {
    const uint32_t links_max = limits_.links_per_box_max;
    const auto drives_enough = [&](uint32_t drives) { return keeps({drives, drives, links_max}); };
    uint32_t too_few = 0;
    uint32_t drives = 1;
    while (!drives_enough(drives)) {
      if (drives == limits_.drives_max) return std::move(plan_);
      too_few = drives;
      drives = std::min(drives * 2, limits_.drives_max);
    }
    drives = min_enough(too_few + 1, drives, drives_enough);
    const uint32_t fewest_boxes = (drives + limits_.drives_per_box - 1) / limits_.drives_per_box;
    const uint32_t boxes = min_enough(
        fewest_boxes, drives, [&](uint32_t count) { return keeps({drives, count, links_max}); });
    const uint32_t links =
        min_enough(1, links_max, [&](uint32_t count) { return keeps({drives, boxes, count}); });
    plan_.min = Hardware{drives, boxes, links};
    return std::move(plan_);
  }

 private:
  bool keeps(const Hardware& hardware) {
    for (const Trial& trial : plan_.trials) {
      if (trial.hardware == hardware) return trial.worst_p99_ns() <= p99_ns_max_;
    }
    plan_.trials.push_back(simulate_(hardware));
    return plan_.trials.back().worst_p99_ns() <= p99_ns_max_;
  }

  const PlanLimits& limits_;
  double p99_ns_max_;
  const std::function<Trial(const Hardware&)>& simulate_;
  Plan plan_;
};

}  // namespace

Plan plan(const PlanLimits& limits, double p99_ns_max,
          const std::function<Trial(const Hardware&)>& simulate) {
  return Search(limits, p99_ns_max, simulate).run();
}

}  // namespace cairn::snis
