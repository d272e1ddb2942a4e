// SPDX-License-Identifier: Apache-2.0
// Drawing positive numbers with a given mean, variance and correlation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/rng.h"

namespace cairn::trace {

// Variance is told as the squared coefficient of variation (SCV): variance / mean^2.
struct Moments {
  double mean = 1;
  double scv = 1;
  // Lag-1 autocorrelation; later lags fall geometrically. Needs an SCV above 1.
  double correlation = 0;
};

// What is wrong with them and what to do; nothing when numbers can be drawn.
std::optional<std::string> check(const Moments& moments);

// Numbers with these two moments (and correlation):
//   SCV 0         the mean itself
//   SCV below 1   a mixture of two Erlang distributions with neighbouring numbers of phases
//   SCV 1         exponential
//   SCV above 1   two exponentials with balanced means (H2); with correlation a Markovian arrival
//                 process of two phases, MAP(2), whose phase is kept with some probability
class Draw {
 public:
  // `moments` passed check().
  Draw(const Moments& moments, uint64_t seed);

  double next();
  // The probability that the next number comes from the same exponential for correlation's sake.
  double kept() const { return kept_; }

 private:
  double erlang();
  double two_phases();

  Rng rng_;
  Moments moments_;
  double first_share_ = 1;    // of numbers from the first distribution
  double means_[2] = {1, 1};  // of the exponentials
  uint32_t stages_ = 1;       // of the longer Erlang distribution
  double kept_ = 0;
  int phase_ = -1;  // of the last number; none yet
};

}  // namespace cairn::trace
