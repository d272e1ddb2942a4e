// SPDX-License-Identifier: Apache-2.0
#include "model/net/mark_streams.h"

namespace cairn::net {

namespace {

using Vector = std::array<uint64_t, 3>;
using Matrix = std::array<Vector, 3>;

constexpr uint64_t kModulus[2] = {4294967087, 4294944443};
constexpr uint64_t kStep[2][3] = {{4294967087 - 810728, 1403580, 0},
                                  {4294944443 - 1370589, 0, 527612}};

constexpr Vector apply(const Matrix& m, const Vector& v, uint64_t modulus) {
  Vector product{};
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) product[i] = (product[i] + m[i][k] * v[k] % modulus) % modulus;
  }
  return product;
}

// 2^exponent steps of one part of the generator.
constexpr Matrix jump(int part, int exponent) {
  Matrix m = {Vector{0, 1, 0}, {0, 0, 1}, {kStep[part][0], kStep[part][1], kStep[part][2]}};
  for (int i = 0; i < exponent; ++i) {
    Matrix square{};
    for (int row = 0; row < 3; ++row) {
      for (int column = 0; column < 3; ++column) {
        for (int k = 0; k < 3; ++k) {
          square[row][column] =
              (square[row][column] + m[row][k] * m[k][column] % kModulus[part]) % kModulus[part];
        }
      }
    }
    m = square;
  }
  return m;
}

constexpr Matrix kStream[2] = {jump(0, 127), jump(1, 127)};
constexpr Matrix kSubstream[2] = {jump(0, 76), jump(1, 76)};  // the reference draws from the second

}  // namespace

MarkStreams::MarkStreams(uint64_t first_stream) {
  start_ = {Vector{1, 1, 1}, Vector{1, 1, 1}};
  for (uint64_t i = 0; i < first_stream; ++i) skip();
}

void MarkStreams::skip() {
  for (int part = 0; part < 2; ++part) {
    start_[part] = apply(kStream[part], start_[part], kModulus[part]);
  }
}

double MarkStreams::next() {
  uint64_t drawn[2];
  for (int part = 0; part < 2; ++part) {
    const Vector state = apply(kSubstream[part], start_[part], kModulus[part]);
    uint64_t sum = 0;
    for (int k = 0; k < 3; ++k)
      sum = (sum + kStep[part][k] * state[k] % kModulus[part]) % kModulus[part];
    drawn[part] = sum;
  }
  skip();
  const uint64_t difference =
      drawn[0] > drawn[1] ? drawn[0] - drawn[1] : drawn[0] + kModulus[0] - drawn[1];
  return static_cast<double>(difference) * 2.328306549295727688e-10;
}

}  // namespace cairn::net
