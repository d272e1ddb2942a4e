// SPDX-License-Identifier: Apache-2.0
// L'Ecuyer's combined multiple recursive generator MRG32k3a (Operations Research 47(1), 1999).
// The reference draws its workloads from it, so the same addresses can be drawn here: its streams,
// which overflow in the jump to their start, not those of the paper.
#pragma once

#include <array>
#include <cstdint>

namespace cairn::flash {

class Mrg32k3a {
 public:
  // Meant to start (seed / 200 + 1) * 2^(seed % 200) steps after the all-ones state.
  explicit Mrg32k3a(uint32_t seed);

  // Uniform in (0, 1].
  double next();
  // Uniform in [low, high].
  uint64_t between(uint64_t low, uint64_t high) {
    return low + static_cast<uint64_t>(static_cast<double>(high - low + 1) * next());
  }

 private:
  std::array<std::array<double, 3>, 2> state_;
};

}  // namespace cairn::flash
