// SPDX-License-Identifier: Apache-2.0
#include "trace/search.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace cairn::trace {

namespace {

constexpr double kMedian = 32768;
// A log-normal body of this width, and one request in two thousand from a tail, even in its
// logarithm, that ends at the largest: together they have the paper's mean.
constexpr double kSigma = 0.42;
constexpr double kTailShare = 1.0 / 2000;
constexpr double kTailFrom = 256 * 1024;

}  // namespace

uint32_t Search::draw_bytes() {
  double bytes = 0;
  if (rng_.uniform() < kTailShare) {
    bytes = kTailFrom * natural_exp(natural_log(kSearchBytesMax / kTailFrom) * rng_.uniform());
  } else {
    const double radius = std::sqrt(-2 * natural_log(1 - rng_.uniform()));
    const double normal = radius * cosine_of_turns(rng_.uniform());
    bytes = kMedian * natural_exp(kSigma * normal);
  }
  const double rounded = std::round(bytes / kSearchBytesMin) * kSearchBytesMin;
  return static_cast<uint32_t>(std::clamp<double>(rounded, kSearchBytesMin, kSearchBytesMax));
}

Record Search::next() {
  arrival_ += rng_.exponential(1e9 / options_.per_second);
  Record record{.arrival = static_cast<Nanos>(arrival_), .bytes = draw_bytes()};
  const uint64_t room = options_.space > record.bytes ? options_.space - record.bytes : 0;
  record.offset = rng_.below(room / kSearchBytesMin + 1) * kSearchBytesMin;
  return record;
}

}  // namespace cairn::trace
