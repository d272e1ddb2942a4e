// SPDX-License-Identifier: Apache-2.0
#include <cmath>

double spread(double x) {
  const double a = std::log1p(x) + std::pow(x, 2);
  return a * std::cos(x) + std::atan(x) + std::sqrt(x);
}
