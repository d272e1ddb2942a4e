// SPDX-License-Identifier: Apache-2.0
#include "trace/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cairn::trace {

namespace {

constexpr double kScvMax = 1e6;
// Below it an Erlang mixture would need more phases than anybody can tell from a constant.
constexpr double kScvOfConstant = 1e-3;

// The largest correlation that two exponentials of this SCV can have between neighbours.
double correlation_max(double scv) { return (scv - 1) / (2 * scv); }

// The share of the exponential with the smaller mean when both contribute half of the mean.
double share_of_short(double scv) { return (1 + std::sqrt((scv - 1) / (scv + 1))) / 2; }

}  // namespace

std::optional<std::string> check(const Moments& moments) {
  if (!(moments.mean > 0) || !std::isfinite(moments.mean)) return "the mean must be above 0";
  if (!(moments.scv >= 0 && moments.scv <= kScvMax)) {
    return fmt::format("the SCV (variance / mean^2) must be from 0 to {}", kScvMax);
  }
  if (moments.correlation == 0) return std::nullopt;
  if (moments.scv <= 1) return "autocorrelation needs an SCV above 1";
  const double max = correlation_max(moments.scv);
  const double kept = moments.correlation / max;
  // Leaving a phase for itself must stay a probability.
  const double share = share_of_short(moments.scv);
  const double min = -std::min(share, 1 - share) / std::max(share, 1 - share);
  if (!(kept < 1 && kept >= min)) {
    return fmt::format("with an SCV of {} autocorrelation goes from {:.4g} to below {:.4g}",
                       moments.scv, min * max, max);
  }
  return std::nullopt;
}

Draw::Draw(const Moments& moments, uint64_t seed) : rng_(seed), moments_(moments) {
  CHECK(!check(moments), "the moments were checked");
  const double scv = moments.scv;
  if (scv > 1) {
    first_share_ = share_of_short(scv);
    means_[0] = moments.mean / (2 * first_share_);
    means_[1] = moments.mean / (2 * (1 - first_share_));
    kept_ = moments.correlation / correlation_max(scv);
  } else if (scv < 1 && scv >= kScvOfConstant) {
    // Tijms: k - 1 phases with probability p, else k, all of the same rate.
    stages_ = static_cast<uint32_t>(std::ceil(1 / scv));
    const double k = stages_;
    first_share_ = (k * scv - std::sqrt(k * (1 + scv) - k * k * scv)) / (1 + scv);
    means_[0] = moments.mean / (k - first_share_);
  }
}

double Draw::next() {
  if (moments_.scv < kScvOfConstant) return moments_.mean;
  if (moments_.scv < 1) return erlang();
  if (moments_.scv == 1) return rng_.exponential(moments_.mean);
  return two_phases();
}

double Draw::erlang() {
  const uint32_t stages = stages_ - (rng_.bernoulli(first_share_) ? 1 : 0);
  double sum = 0;
  for (uint32_t i = 0; i < stages; ++i) sum += rng_.exponential(means_[0]);
  return sum;
}

// After each number the phase is drawn anew, or kept. With a negative probability of keeping it, it
// is left more often than an independent draw would.
double Draw::two_phases() {
  double first = first_share_;
  if (phase_ >= 0) first = kept_ * (phase_ == 0 ? 1 : 0) + (1 - kept_) * first_share_;
  phase_ = rng_.bernoulli(first) ? 0 : 1;
  return rng_.exponential(means_[phase_]);
}

}  // namespace cairn::trace
