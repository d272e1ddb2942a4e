// SPDX-License-Identifier: Apache-2.0
// A load that fio ran on a real drive, run on a modelled one.
#pragma once

#include <cstdint>
#include <optional>

#include "model/flash/parameters.h"
#include "plan/flash/fio_points.h"

namespace cairn::plan {

struct FitLoad {
  uint64_t requests = 4000;  // about so many are measured
  uint32_t seed = 798;
  double occupancy = 0;  // part of the drive that random writes filled before; 0: new
};

struct Prediction {
  std::optional<LoadSide> read;
  std::optional<LoadSide> write;
};

// What the model says to a point: requests in a closed loop, measured once the drive is in its
// stride and before the loop runs dry. The mapping cache is warm. Nothing when the drive cannot be
// filled as asked for. `parameters` passed check() and are not of the reference's mode.
std::optional<Prediction> predict(const flash::Parameters& parameters, const FioPoint& point,
                                  const FitLoad& load);

}  // namespace cairn::plan
