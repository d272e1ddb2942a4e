// SPDX-License-Identifier: Apache-2.0
#include "model/flash/mrg32k3a.h"

namespace cairn::flash {

namespace {

constexpr int64_t kModulus[2] = {4294967087, 4294944443};
constexpr double kA12 = 1403580;
constexpr double kA13 = -810728;
constexpr double kA21 = 527612;
constexpr double kA23 = -1370589;

using Vector = std::array<int64_t, 3>;
using Matrix = std::array<Vector, 3>;

// The reference's products overflow 63 bits and wrap around, so that its streams do not start where
// the generator's definition says.
int64_t multiply_add(int64_t a, int64_t b, int64_t sum, int64_t modulus) {
  const uint64_t wrapped =
      static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(sum);
  return static_cast<int64_t>(wrapped) % modulus;
}

Matrix multiply(const Matrix& a, const Matrix& b, int64_t modulus) {
  Matrix product{};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 3; ++k) {
        product[i][j] = multiply_add(a[i][k], b[k][j], product[i][j], modulus);
      }
    }
  }
  return product;
}

Vector multiply(const Matrix& a, const Vector& v, int64_t modulus) {
  Vector product{};
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) product[i] = multiply_add(a[i][k], v[k], product[i], modulus);
  }
  return product;
}

double remainder(double x, int64_t modulus) {
  const auto m = static_cast<double>(modulus);
  x -= static_cast<double>(static_cast<int64_t>(x / m)) * m;
  return x < 0 ? x + m : x;
}

}  // namespace

Mrg32k3a::Mrg32k3a(uint32_t seed) {
  const auto last_row = [](double value, int part) {
    return static_cast<int64_t>(value) + (value < 0 ? kModulus[part] : 0);
  };
  Matrix steps[2] = {Matrix{Vector{0, 1, 0}, {0, 0, 1}, {last_row(kA13, 0), last_row(kA12, 0), 0}},
                     Matrix{Vector{0, 1, 0}, {0, 0, 1}, {last_row(kA23, 1), 0, last_row(kA21, 1)}}};
  for (int part = 0; part < 2; ++part) {
    Vector start = {1, 1, 1};
    for (uint32_t i = 0; i < seed % 200; ++i) {
      steps[part] = multiply(steps[part], steps[part], kModulus[part]);
    }
    for (uint32_t n = seed / 200 + 1; n != 0; n >>= 1) {
      if ((n & 1) != 0) start = multiply(steps[part], start, kModulus[part]);
      steps[part] = multiply(steps[part], steps[part], kModulus[part]);
    }
    for (int i = 0; i < 3; ++i) state_[part][i] = static_cast<double>(start[i]);
  }
}

double Mrg32k3a::next() {
  auto& [s1, s2] = state_;
  const double p1 = remainder(kA12 * s1[1] + kA13 * s1[0], kModulus[0]);
  s1 = {s1[1], s1[2], p1};
  const double p2 = remainder(kA21 * s2[2] + kA23 * s2[0], kModulus[1]);
  s2 = {s2[1], s2[2], p2};
  const double difference = p1 - p2 < 0 ? p1 - p2 + static_cast<double>(kModulus[0]) : p1 - p2;
  constexpr double kNorm = 2.328306549295728e-10;  // 1 / (m1 + 1)
  return (difference + 1) * kNorm;
}

}  // namespace cairn::flash
