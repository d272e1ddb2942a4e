// SPDX-License-Identifier: Apache-2.0
// How much hardware a load needs: the least that keeps a promise, found by simulating some of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace cairn::snis {

// Drives are spread evenly over boxes, each with so many links to the network.
struct Hardware {
  uint32_t drives = 1;
  uint32_t boxes = 1;
  uint32_t links_per_box = 1;

  friend auto operator<=>(const Hardware&, const Hardware&) = default;
};

struct PlanLimits {
  uint32_t drives_max = 512;
  uint32_t drives_per_box = 24;
  uint32_t links_per_box_max = 8;
};

// What one simulation found. Anything below the promise keeps it.
struct Trial {
  Hardware hardware;
  double read_p99_ns = 0;
  double write_p99_ns = 0;
  double worst_p99_ns() const { return read_p99_ns > write_p99_ns ? read_p99_ns : write_p99_ns; }
};

struct Plan {
  std::optional<Hardware> min;  // nothing when not even all of the limits is enough
  std::vector<Trial> trials;    // in the order they were simulated
};

// Takes more hardware as never worse. First the fewest drives, each in a box of its own with all
// links, then the fewest boxes for them, then the fewest links. Each is found by doubling and
// halving, so a plan takes about 3 log2(drives_max) simulations. The same limits and simulations
// give the same plan.
Plan plan(const PlanLimits& limits, double p99_ns_max,
          const std::function<Trial(const Hardware&)>& simulate);

}  // namespace cairn::snis
