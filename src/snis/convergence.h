// SPDX-License-Identifier: Apache-2.0
// When the paper calls an iteration stable.
#pragma once

#include <optional>
#include <string_view>

#include "snis/metrics.h"

namespace cairn::snis {

struct StopRules {
  Weights weights = kEqualWeights;
  double sigma = 0.10;  // the criterion drops below it, or
  double tau = 0.02;    // differs by at most this from the one before,
  int in_a_row = 3;     // so many times in a row
};

enum class Stable : uint8_t { kNo, kBelowSigma, kWithinTau };
std::string_view text(Stable stable);

class Convergence {
 public:
  explicit Convergence(const StopRules& rules) : rules_(rules) {}

  // The criterion of the next iteration, from 1 on. Says whether that one is stable.
  Stable add(double criterion);
  // The first iteration that was stable.
  std::optional<int> at() const { return at_; }
  Stable why() const { return why_; }

 private:
  StopRules rules_;
  int iteration_ = 0;
  int within_ = 0;
  std::optional<double> last_;
  std::optional<int> at_;
  Stable why_ = Stable::kNo;
};

}  // namespace cairn::snis
