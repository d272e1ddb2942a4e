// SPDX-License-Identifier: Apache-2.0
#include "loadgen/ycsb_keys.h"

#include <algorithm>

#include "base/check.h"
#include "base/portable_math.h"

namespace cairn::loadgen {

namespace {

// Of a base above 0.
double power(double base, double exponent) { return natural_exp(natural_log(base) * exponent); }

double zeta(uint64_t terms, double exponent) {
  double sum = 0;
  for (uint64_t i = 1; i <= terms; ++i) sum += power(static_cast<double>(i), -exponent);
  return sum;
}

}  // namespace

YcsbKeys::YcsbKeys(YcsbDistribution distribution, uint64_t records, double exponent)
    : distribution_(distribution), records_(records), exponent_(exponent) {
  CHECK(records >= 3);
  CHECK(exponent > 0 && exponent < 1);
  if (distribution == YcsbDistribution::kUniform) return;
  zeta_ = zeta(records, exponent);
  zeta_of_two_ = zeta(2, exponent);
  eta_ = (1 - power(2.0 / static_cast<double>(records), 1 - exponent)) / (1 - zeta_of_two_ / zeta_);
}

uint64_t YcsbKeys::draw(Rng& rng) const {
  if (distribution_ == YcsbDistribution::kUniform) return rng.below(records_);
  return mix64(draw_rank(rng)) % records_;
}

uint64_t YcsbKeys::draw_rank(Rng& rng) const {
  if (distribution_ == YcsbDistribution::kUniform) return rng.below(records_);
  const double part = rng.uniform();
  const double sum = part * zeta_;
  if (sum < 1) return 0;
  if (sum < zeta_of_two_) return 1;
  const double rank =
      static_cast<double>(records_) * power(eta_ * part - eta_ + 1, 1 / (1 - exponent_));
  return std::min(static_cast<uint64_t>(rank), records_ - 1);
}

}  // namespace cairn::loadgen
