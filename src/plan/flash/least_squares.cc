// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cairn::plan {

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

std::vector<double> damped_step(const Columns& columns, const std::vector<double>& errors,
                                double damping) {
  const size_t n = columns.size();
  // The normal equations, by Cholesky: damping makes them positive definite.
  std::vector<std::vector<double>> lower(n, std::vector<double>(n));
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = dot(columns[i], columns[j]) + (i == j ? damping : 0);
      for (size_t k = 0; k < j; ++k) sum -= lower[i][k] * lower[j][k];
      lower[i][j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / lower[j][j];
    }
    x[i] = -dot(columns[i], errors);
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) x[i] -= lower[i][k] * x[k];
    x[i] /= lower[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) x[i] -= lower[k][i] * x[k];
    x[i] /= lower[i][i];
  }
  return x;
}

double independence(const Columns& columns, size_t column) {
  std::vector<double> rest = columns[column];
  const double length = std::sqrt(dot(rest, rest));
  if (length == 0) return 0;
  // Gram and Schmidt: what is left after the directions of all others were taken out.
  Columns directions;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i == column) continue;
    std::vector<double> one = columns[i];
    const double before = std::sqrt(dot(one, one));
    for (const std::vector<double>& direction : directions) {
      const double part = dot(one, direction);
      for (size_t k = 0; k < one.size(); ++k) one[k] -= part * direction[k];
    }
    const double left = std::sqrt(dot(one, one));
    if (left <= 1e-9 * before || left == 0) continue;
    for (double& value : one) value /= left;
    directions.push_back(std::move(one));
  }
  for (const std::vector<double>& direction : directions) {
    const double part = dot(rest, direction);
    for (size_t k = 0; k < rest.size(); ++k) rest[k] -= part * direction[k];
  }
  return std::min(1.0, std::sqrt(dot(rest, rest)) / length);
}

}  // namespace cairn::plan
