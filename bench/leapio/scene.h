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
#include "base/units.h"
#include "model/flash/parameters.h"

namespace cairn::bench::leapio {

struct Scene {
  std::string stack = "{}";  // with {} for each drive
  bool remote = false;       // each drive in a box of its own, over NVMe/TCP
  bool search = true;
  double lookups_per_second = 40'000;
  bool batch = false;
  double batch_reads = 0.5;  // the part of its requests that are
  // Search reads a version that was taken before, while batch writes its blocks anew.
  bool pinned = false;
  // Random writes had filled the drive before, so that it collects garbage as batch writes. Else it
  // is new.
  bool aged = false;
  int64_t suspend_ns = 0;  // what a program takes to let a read pass; 0: as the stage's drive

  auto operator<=>(const Scene&) const = default;
};

// What all scenes have in common.
struct Stage {
  std::shared_ptr<const flash::Parameters> drive;
  // Of each modelled drive, scaled from `drive`: enough blocks per plane to collect garbage in the
  // background, as a whole one does, and not only when writes have to wait for it.
  uint64_t drive_bytes = 128_GiB;
  uint64_t used_bytes = 2_GiB;  // the part of it that is searched and worked on
  double seconds = 2;           // that are measured; lookups come for a quarter more
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
