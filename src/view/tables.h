// SPDX-License-Identifier: Apache-2.0
// A view as tables for people. Pure functions of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "view/view.h"

namespace cairn::view {

// What a volume does in all, of its flows.
struct VolumeTraffic {
  std::string volume;
  uint32_t drives = 0;
  uint32_t clients = 0;
  uint64_t read_bytes_per_s = 0;
  uint64_t write_bytes_per_s = 0;
  uint64_t ops_per_s = 0;
  Duration median;
  Duration p99;
};
// By name.
std::vector<VolumeTraffic> volumes_of(const View& view);

// Drives that anybody told of, the busiest first; `rows` at most, 0: all.
std::string drives_text(const View& view, size_t rows = 0);
// Volumes, those with most bytes first.
std::string volumes_text(const View& view, size_t rows = 0);

}  // namespace cairn::view
