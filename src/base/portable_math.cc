// SPDX-License-Identifier: Apache-2.0
#include "base/portable_math.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace cairn {

namespace {

constexpr double kPi = std::numbers::pi;
// ln 2 in two parts: the first has so few bits that its product with any exponent is exact.
constexpr double kLn2High = 0x1.62e42fefa38p-1;
constexpr double kLn2Low = 0x1.ef35793c7673p-45;
constexpr double kExpMax = 700;

// A number as mantissa * 2^exponent, with the mantissa between sqrt(1/2) and sqrt(2).
struct Split {
  double mantissa;
  int exponent;
};

Split split(double x) {
  CHECK(x > 0 && std::isfinite(x), "a logarithm of a finite number above 0");
  Split result{};
  result.mantissa = std::frexp(x, &result.exponent);
  if (result.mantissa < std::numbers::sqrt2 / 2) {
    result.mantissa *= 2;
    --result.exponent;
  }
  return result;
}

// ln m + ln2 * exponent. With f = m - 1 and s = f / (2 + f), ln m = 2 atanh s
// = f - f * f / 2 + s * (f * f / 2 + r), where r = 2/3 s^2 + 2/5 s^4 + ...: the large part is
// exact, and what is rounded is small.
double log_of(const Split& x) {
  constexpr int kTerms = 11;  // s is at most 0.172: the next is below 2^-58
  const double f = x.mantissa - 1;
  const double s = f / (2 + f);
  const double square = s * s;
  double r = 0;
  for (int term = kTerms; term > 0; --term) r = square * (r + 2.0 / (2 * term + 1));
  const double half = f * f / 2;
  const double k = x.exponent;
  return k * kLn2High - ((half - (s * (half + r) + k * kLn2Low)) - f);
}

// 1 - x^2/(n+1)(n+2) * (1 - x^2/(n+3)(n+4) * ...): of cosine for n = 0, of sine / x for n = 1.
// x is at most pi / 4, so that the last of ten terms is below 2^-80.
double alternating(double x, int n) {
  double sum = 1;
  for (int i = n + 20; i > n; i -= 2) sum = 1 - x * x / (i * (i - 1)) * sum;
  return sum;
}

}  // namespace

double whole_power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

double natural_log(double x) { return log_of(split(x)); }

double binary_log(double x) {
  const Split parts = split(x);
  return parts.exponent + log_of({parts.mantissa, 0}) / std::numbers::ln2;
}

double natural_exp(double x) {
  CHECK(x <= kExpMax, "a power of e that a double holds");
  if (x < -kExpMax) return 0;
  constexpr int kTerms = 15;  // of at most ln2 / 2 each: the next is below 2^-60
  const double k = std::round(x / std::numbers::ln2);
  const double rest = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int term = kTerms; term > 0; --term) sum = 1 + rest / term * sum;
  return std::ldexp(sum, static_cast<int>(k));
}

double cube_root(double x) {
  if (x == 0) return x;
  const double size = std::abs(x);
  double root = natural_exp(natural_log(size) / 3);
  root -= (root - size / (root * root)) / 3;
  return std::copysign(root, x);
}

double cosine_of_turns(double turns) {
  CHECK(turns >= 0 && turns <= 1, "part of a turn");
  const double quarters = std::round(turns * 4);
  const double angle = 2 * kPi * (turns - quarters / 4);  // the difference is exact
  switch (static_cast<int>(quarters) % 4) {
    case 0:
      return alternating(angle, 0);
    case 1:
      return -angle * alternating(angle, 1);
    case 2:
      return -alternating(angle, 0);
    default:
      return angle * alternating(angle, 1);
  }
}

}  // namespace cairn
