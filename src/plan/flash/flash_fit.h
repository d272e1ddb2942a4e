// SPDX-License-Identifier: Apache-2.0
// Which drive, of all that differ from a profile in the knobs of fit_knobs.h, behaves most like the
// one that was measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/flash/parameters.h"
#include "plan/flash/fio_points.h"
#include "plan/flash/fit_knobs.h"
#include "plan/flash/fit_load.h"

namespace cairn::plan {

struct FitOptions {
  FitLoad load;
  // Drives that the search tries; each runs every point. Some dozens more show what points tell.
  uint64_t trials_max = 400;
  // Told after each trial: how many there were, and the root of the mean squared error so far.
  std::function<void(uint64_t trials, double error)> on_trial = [](uint64_t, double) {};
};

// How much the points say about a knob.
enum class Told : uint8_t {
  kWell,
  kNotAtAll,  // no point changes with it: the value is that of the profile
  kBound,     // no point changes with it here, but the profile's value does not fit
  kTogether,  // others make up for it: only their combination is known
};

struct FittedKnob {
  double start = 0;
  double value = 0;
  Told told = Told::kWell;
};

struct FlashFit {
  flash::Parameters parameters;
  std::vector<FittedKnob> knobs;        // in the order of fit_knobs()
  std::vector<Prediction> predictions;  // in the order of the points
  uint64_t trials = 0;
  double error = 0;  // root of the mean squared relative error of throughput and mean latency
};

// `start` passed check() and is not of the reference's mode; there is at least one point. The same
// arguments give the same fit. Nothing when the start drive cannot be filled as options.load says.
std::optional<FlashFit> fit_flash(const flash::Parameters& start, std::span<const FioPoint> points,
                                  const FitOptions& options);

}  // namespace cairn::plan
