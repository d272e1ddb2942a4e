// SPDX-License-Identifier: Apache-2.0
#include "snis/plan.h"

#include <gtest/gtest.h>

namespace cairn::snis {
namespace {

// As if every drive and every link carried its share, and latency fell with both.
Trial shared_evenly(const Hardware& hardware) {
  const double drives = 9000.0 / hardware.drives;
  const double links = 1000.0 / (hardware.boxes * hardware.links_per_box);
  return {.hardware = hardware, .read_p99_ns = drives + links, .write_p99_ns = links};
}

TEST(Plan, FindsTheLeastByBruteForceToo) {
  const PlanLimits limits{.drives_max = 200, .drives_per_box = 24, .links_per_box_max = 8};
  for (const double promise : {60.0, 200.0, 400.0, 1000.0, 5000.0, 20'000.0}) {
    const Plan found = plan(limits, promise, shared_evenly);
    Hardware best{};
    for (uint32_t drives = 1; drives <= 200; ++drives) {
      best = {drives, drives, 8};
      if (shared_evenly(best).worst_p99_ns() <= promise) break;
    }
    while (best.boxes > (best.drives + 23) / 24) {
      Hardware fewer = best;
      --fewer.boxes;
      if (shared_evenly(fewer).worst_p99_ns() > promise) break;
      best = fewer;
    }
    while (best.links_per_box > 1) {
      Hardware fewer = best;
      --fewer.links_per_box;
      if (shared_evenly(fewer).worst_p99_ns() > promise) break;
      best = fewer;
    }
    ASSERT_TRUE(found.min) << promise;
    EXPECT_EQ(*found.min, best) << promise;
    EXPECT_LE(found.trials.size(), 30U);
  }
}

TEST(Plan, NothingIsEnoughWhenTheLimitsAreNot) {
  const Plan found = plan({.drives_max = 10}, 1, shared_evenly);
  EXPECT_FALSE(found.min);
  EXPECT_EQ(found.trials.back().hardware.drives, 10U);
}

}  // namespace
}  // namespace cairn::snis
