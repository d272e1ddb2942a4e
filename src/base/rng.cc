// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <bit>

#include "base/check.h"
#include "base/portable_math.h"

namespace cairn {

uint64_t mix64(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) {
    word = mix64(seed);
    seed += 0x9e3779b97f4a7c15;
  }
}

uint64_t Rng::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Rng::below(uint64_t bound) {
  CHECK(bound > 0);
  // Lemire's multiply-and-reject: uniform without a division in the common case.
  auto product = static_cast<unsigned __int128>(next()) * bound;
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t threshold = -bound % bound;
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<unsigned __int128>(next()) * bound;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

double Rng::exponential(double mean) { return -mean * natural_log(1 - uniform()); }

void Rng::fill(MutableBytes bytes) {
  while (bytes.size() >= 8) {
    store(bytes, next());
    bytes = bytes.subspan(8);
  }
  if (!bytes.empty()) {
    const uint64_t last = next();
    std::memcpy(bytes.data(), &last, bytes.size());
  }
}

}  // namespace cairn
