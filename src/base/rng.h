// SPDX-License-Identifier: Apache-2.0
// A small, fast, seedable generator (xoshiro256**). Not for keys or secrets.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cairn {

class Rng {
 public:
  explicit Rng(uint64_t seed);

  uint64_t next();
  // Uniform in [0, bound); bound above 0.
  uint64_t below(uint64_t bound);
  // Uniform in [low, high], both included.
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with the given probability; 0 never, 1 always. Always draws once.
  bool bernoulli(double probability) { return uniform() < probability; }
  // Exponential with the given mean.
  double exponential(double mean);
  void fill(MutableBytes bytes);
  // A generator of its own stream, so that one part's draws do not shift another's.
  Rng fork() { return Rng(next()); }

 private:
  uint64_t state_[4];
};

// One step of splitmix64: a good 64-bit mixing function.
uint64_t mix64(uint64_t value);

}  // namespace cairn
