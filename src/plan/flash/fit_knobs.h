// SPDX-License-Identifier: Apache-2.0
// What a fit may change in a drive's profile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/flash/parameters.h"

namespace cairn::plan {

struct FitKnob {
  std::string_view key;  // of the profile
  bool is_whole;         // a count
  double min;
  double max;
  double (*get)(const flash::Parameters&);
  void (*set)(flash::Parameters&, double);
  // The load whose latency or throughput tells it, as fio's options.
  std::string_view load;
};

std::span<const FitKnob> fit_knobs();

// One value per knob, each within its range.
using KnobValues = std::vector<double>;

KnobValues knob_values(const flash::Parameters& parameters);

// The drive with other values, and as many blocks in all: a fit does not change how much a drive
// stores. Passes check() when `start` does.
flash::Parameters with_knobs(const flash::Parameters& start, const KnobValues& values);

// The whole command that measures what tells the knob.
std::string fio_command(const FitKnob& knob);

}  // namespace cairn::plan
