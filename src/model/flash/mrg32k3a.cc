// SPDX-License-Identifier: Apache-2.0
#include "model/flash/mrg32k3a.h"

namespace cairn::flash {

namespace {

constexpr uint64_t kModulus[2] = {4294967087, 4294944443};
constexpr uint64_t kA12 = 1403580;
constexpr uint64_t kA13 = 810728;  // subtracted
constexpr uint64_t kA21 = 527612;
constexpr uint64_t kA23 = 1370589;  // subtracted

using Vector = std::array<uint64_t, 3>;
using Matrix = std::array<Vector, 3>;

Matrix multiply(const Matrix& a, const Matrix& b, uint64_t modulus) {
  Matrix product{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      uint64_t sum = 0;
      for (int k = 0; k < 3; ++k) sum = (sum + a[i][k] * b[k][j] % modulus) % modulus;
      product[i][j] = sum;
    }
  }
  return product;
}

Vector multiply(const Matrix& a, const Vector& v, uint64_t modulus) {
  Vector product{};
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) product[i] = (product[i] + a[i][k] * v[k] % modulus) % modulus;
  }
  return product;
}

}  // namespace

Mrg32k3a::Mrg32k3a(uint32_t seed) {
  Matrix steps[2] = {Matrix{Vector{0, 1, 0}, {0, 0, 1}, {kModulus[0] - kA13, kA12, 0}},
                     Matrix{Vector{0, 1, 0}, {0, 0, 1}, {kModulus[1] - kA23, 0, kA21}}};
  for (int part = 0; part < 2; ++part) {
    state_[part] = {1, 1, 1};
    for (uint32_t i = 0; i < seed % 200; ++i) {
      steps[part] = multiply(steps[part], steps[part], kModulus[part]);
    }
    for (uint32_t n = seed / 200 + 1; n != 0; n >>= 1) {
      if ((n & 1) != 0) state_[part] = multiply(steps[part], state_[part], kModulus[part]);
      steps[part] = multiply(steps[part], steps[part], kModulus[part]);
    }
  }
}

double Mrg32k3a::next() {
  auto& [s1, s2] = state_;
  const uint64_t p1 = (kA12 * s1[1] + (kModulus[0] - kA13) * s1[0] % kModulus[0]) % kModulus[0];
  s1 = {s1[1], s1[2], p1};
  const uint64_t p2 = (kA21 * s2[2] + (kModulus[1] - kA23) * s2[0] % kModulus[1]) % kModulus[1];
  s2 = {s2[1], s2[2], p2};
  const uint64_t difference = p1 >= p2 ? p1 - p2 : p1 + kModulus[0] - p2;
  constexpr double kNorm = 2.328306549295728e-10;  // 1 / (m1 + 1)
  return static_cast<double>(difference + 1) * kNorm;
}

}  // namespace cairn::flash
