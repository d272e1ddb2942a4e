// SPDX-License-Identifier: Apache-2.0
// YcsbKeys: which record an operation of a YCSB-like load is about.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace cairn::loadgen {

inline constexpr double kYcsbExponent = 0.99;

enum class YcsbDistribution : uint8_t {
  kUniform,
  kZipfian,  // few records are popular, as YCSB has them, scattered over all keys
};

// Any thread may draw, with a generator of its own.
class YcsbKeys {
 public:
  // At least three records; the exponent of Zipf's law is above 0 and below 1. Zipfian: takes time
  // in proportion to the records.
  YcsbKeys(YcsbDistribution distribution, uint64_t records, double exponent = kYcsbExponent);

  // From 0 to `records` - 1.
  uint64_t draw(Rng& rng) const;
  // The same before it is scattered: Zipfian, 0 is the most popular one.
  uint64_t draw_rank(Rng& rng) const;

 private:
  YcsbDistribution distribution_;
  uint64_t records_;
  double exponent_;
  // Of the method of Gray et al., "Quickly Generating Billion-Record Synthetic Databases", 3.2.
  double zeta_ = 0;
  double zeta_of_two_ = 0;
  double eta_ = 0;
};

}  // namespace cairn::loadgen
