// SPDX-License-Identifier: Apache-2.0
// Scene: one curve of Figure 11. Production services over modelled drives in the simulator, with a
// search load and a batch load on them; the same scene gives the same numbers each time.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/flash/parameters.h"

namespace cairn::bench::leapio {

struct Scene {
  std::string stack = "{}";  // with {} for each drive
  bool remote = false;       // each drive in a box of its own, over NVMe/TCP
  bool search = true;
  double lookups_per_second = 40'000;
  bool batch = false;
  // Search reads a version that was taken before, while batch writes its blocks anew.
  bool pinned = false;
  uint64_t cache_bytes = 0;  // of each drive; 0: as the stage's drive has

  auto operator<=>(const Scene&) const = default;
};

// What all scenes have in common.
struct Stage {
  std::shared_ptr<const flash::Parameters> drive;
  uint64_t requests = 20'000;  // lookups; a scene without search lasts as long as they would
  uint64_t seed = 1;
};

struct Played {
  std::vector<double> lookup_us;  // latency of each
  double lookup_bytes_per_second = 0;
  double batch_bytes_per_second = 0;  // completed while the lookups came

  // The share of the lookups that took at most so long is `part`, 0 to 1.
  double percentile_us(double part) const;
};

// Errors: those of opening the stack, and of the first request that failed.
Result<Played> play(const Scene& scene, const Stage& stage);

}  // namespace cairn::bench::leapio
