// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/search_load.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace cairn::bench::leapio {

namespace {

constexpr double kMedian = 32.0 * 1024;
constexpr double kSigma = 0.4;
constexpr double kLongShare = 1.0 / 2000;
constexpr double kLongMin = 1024.0 * 1024;
constexpr uint64_t kStep = kLookupMin;

// Box and Muller.
double normal(Rng& rng) {
  const double one = 1 - rng.uniform();
  const double other = rng.uniform();
  return std::sqrt(-2 * std::log(one)) * std::cos(2 * std::numbers::pi * other);
}

uint64_t draw_size(Rng& rng) {
  double bytes = 0;
  if (rng.uniform() < kLongShare) {
    bytes = kLongMin * std::pow(static_cast<double>(kLookupMax) / kLongMin, rng.uniform());
  } else {
    bytes = kMedian * std::exp(kSigma * normal(rng));
  }
  const auto steps = static_cast<uint64_t>(std::llround(bytes / static_cast<double>(kStep)));
  return std::clamp(steps * kStep, kLookupMin, kLookupMax);
}

}  // namespace

std::vector<Lookup> draw(const SearchLoad& load) {
  Rng rng(load.seed);
  std::vector<Lookup> lookups;
  lookups.reserve(static_cast<size_t>(load.seconds * load.per_second));
  for (double at = 0; at < load.seconds; at += rng.exponential(1 / load.per_second)) {
    Lookup lookup{.at = Duration::from_seconds(at), .bytes = draw_size(rng)};
    lookup.offset = rng.below((load.space - lookup.bytes) / kStep + 1) * kStep;
    lookups.push_back(lookup);
  }
  return lookups;
}

}  // namespace cairn::bench::leapio
