// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/ycsb_keys.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cairn::bench {

namespace {

constexpr double kTheta = 0.99;

double zeta(uint64_t terms) {
  double sum = 0;
  for (uint64_t i = 1; i <= terms; ++i) sum += std::pow(static_cast<double>(i), -kTheta);
  return sum;
}

}  // namespace

YcsbKeys::YcsbKeys(YcsbDistribution distribution, uint64_t records)
    : distribution_(distribution), records_(records) {
  CHECK(records >= 3);
  if (distribution == YcsbDistribution::kUniform) return;
  zeta_ = zeta(records);
  zeta_of_two_ = zeta(2);
  eta_ =
      (1 - std::pow(2.0 / static_cast<double>(records), 1 - kTheta)) / (1 - zeta_of_two_ / zeta_);
}

uint64_t YcsbKeys::draw(Rng& rng) const {
  if (distribution_ == YcsbDistribution::kUniform) return rng.below(records_);
  return mix64(draw_rank(rng)) % records_;
}

// 0 is the most popular.
uint64_t YcsbKeys::draw_rank(Rng& rng) const {
  const double part = rng.uniform();
  const double sum = part * zeta_;
  if (sum < 1) return 0;
  if (sum < zeta_of_two_) return 1;
  const double rank =
      static_cast<double>(records_) * std::pow(eta_ * part - eta_ + 1, 1 / (1 - kTheta));
  return std::min(static_cast<uint64_t>(rank), records_ - 1);
}

}  // namespace cairn::bench
