// SPDX-License-Identifier: Apache-2.0
#include "model/flash/mean_field.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/portable_math.h"

namespace cairn::flash {

namespace {

void check_load(uint32_t pages, double load) {
  CHECK(pages >= 2, "a block has pages");
  CHECK(load > 0 && load < 1 - 1.0 / pages, "every victim has a page that is not valid");
}

// The part x of blocks with at least i valid pages, when `above` have more than i: as many blocks
// come (a victim that had fewer is full again) as leave (a page of a block with exactly i is
// overwritten), 1 - x^choices = rate * (x - above). The left side falls with x and the right side
// rises, so Newton's steps, kept between what is too low and what is too high, find it.
double balance(double above, double rate, uint32_t choices) {
  double low = above;
  double high = 1;
  double x = (low + high) / 2;
  for (int step = 0; step < 200 && high - low > 1e-15; ++step) {
    const double power = whole_power(x, choices - 1);
    const double gap = 1 - power * x - rate * (x - above);
    (gap > 0 ? low : high) = x;
    const double next = x + gap / (choices * power + rate);
    if (std::abs(next - x) < 1e-15) break;
    x = next > low && next < high ? next : (low + high) / 2;
  }
  return x;
}

// tail[i]: the part of blocks with at least i valid pages, when each page of a block is overwritten
// `rate` times per collection.
std::vector<double> tails(uint32_t pages, double rate, uint32_t choices) {
  std::vector<double> tail(pages + 2, 0.0);
  for (uint32_t i = pages; i > 0; --i) tail[i] = balance(tail[i + 1], rate * i, choices);
  tail[0] = 1;
  return tail;
}

double sum_from_one(const std::vector<double>& tail) {
  double sum = 0;
  for (size_t i = 1; i < tail.size(); ++i) sum += tail[i];
  return sum;
}

double binomial(uint32_t n, uint32_t k) {
  if (k * 2 > n) k = n - k;
  double result = 1;
  for (uint32_t i = 1; i <= k; ++i) result *= static_cast<double>(n - i + 1) / i;
  return result;
}

// Van Houdt's drift equation for "the best of `choices`", solved by small steps. tail[i] is the
// part of the blocks with at least i valid pages.
std::vector<double> best_of(uint32_t pages, double load, uint32_t choices) {
  std::vector<double> tail(pages + 2, 0.0);
  tail[0] = 1;
  double sum = 0;
  for (uint32_t i = pages; i >= 1; --i) {
    sum += binomial(pages, i) * whole_power(load, i) * whole_power(1 - load, pages - i);
    tail[i] = sum;
  }
  constexpr double kStep = 0.001;
  constexpr int kSteps = 10'000;
  constexpr double kStill = 1e-10;
  std::vector<double> next = tail;
  next[pages] = 0;  // as in the reference: a block with every page valid does not stay so
  std::vector<double> power(pages + 1);
  for (int step = 0; step < kSteps; ++step) {
    double moved = 0;
    for (uint32_t i = 1; i <= pages; ++i) {
      power[i] = whole_power(tail[i], choices);
      moved += power[i];
    }
    double change = 0;
    for (uint32_t i = 1; i < pages; ++i) {
      const double leaving = i * (tail[i] - tail[i + 1]) / (pages * load);
      next[i] = tail[i] + kStep * (1 - power[i] - (pages - moved) * leaving);
      change = std::max(change, std::abs(next[i] - tail[i]));
    }
    change = std::max(change, std::abs(next[pages] - tail[pages]));
    tail = next;
    if (change <= kStill) break;
  }
  std::vector<double> probability(pages + 1);
  for (uint32_t i = 0; i <= pages; ++i) probability[i] = tail[i] - tail[i + 1];
  return probability;
}

std::vector<double> random_choice(uint32_t pages, double load) {
  std::vector<double> probability(pages + 1);
  for (uint32_t i = 0; i <= pages; ++i) {
    double part = load / (load + whole_power(1 - load, i));
    for (uint32_t j = i + 1; j <= pages; ++j) part *= (1 - load) * j / (load + (1 - load) * j);
    probability[i] = part;
  }
  for (uint32_t i = pages; i > 0; --i) probability[i] -= probability[i - 1];
  return probability;
}

std::vector<double> random_above(uint32_t pages, double load, uint32_t min) {
  double harmonic = 0;
  for (uint32_t j = min + 1; j <= pages; ++j) harmonic += 1.0 / j;
  const double a = pages - min - pages * harmonic;
  const double b = load * harmonic + 1 - load;
  const double c = -load / pages;
  const double full = (-b + std::sqrt(b * b - 4 * a * c)) / (2 * a);
  std::vector<double> probability(pages + 2, 0.0);
  for (uint32_t i = pages + 1; i-- > 0;) {
    if (i <= min) {
      const double rest = 1 - load - full * (pages * harmonic - pages + min);
      probability[i] = (i + 1) * probability[i + 1] / (i + load / rest);
    } else {
      probability[i] = i < pages ? pages * full / i : full;
    }
  }
  probability.pop_back();
  return probability;
}

}  // namespace

MeanField greedy_mean_field(uint32_t pages, double load) {
  check_load(pages, load);
  // Blocks lose their pages one by one, more slowly the fewer they have: there are flow / i blocks
  // with i valid pages, down to `min`, where some are collected and the others lose one page more
  // and are collected then. `min` is where the part of blocks comes out between nothing and
  // everything that arrives.
  const double valid = load * pages;
  double harmonic = 0;  // sum of 1 / i above `min`
  for (uint32_t min = pages - 1; min > 0; --min) {
    harmonic += 1.0 / (min + 1);
    const double flow = (valid - min) / (pages - min - min * harmonic);
    const double at_min = 1 - flow * harmonic;
    if (flow <= 0 || at_min < 0 || at_min * min > flow) continue;
    MeanField found{.valid = std::vector<double>(pages + 1, 0.0),
                    .write_amplification = flow / load};
    for (uint32_t i = min + 1; i <= pages; ++i) found.valid[i] = flow / i;
    found.valid[min] = at_min;
    return found;
  }
  // Blocks are so empty that every victim has nothing left.
  MeanField found{.valid = std::vector<double>(pages + 1, 0.0), .write_amplification = 1};
  for (uint32_t i = 1; i <= pages; ++i) found.valid[i] = load / i;
  double rest = 1;
  for (const double part : found.valid) rest -= part;
  found.valid[0] = rest;
  return found;
}

MeanField choices_mean_field(uint32_t pages, double load, uint32_t choices) {
  check_load(pages, load);
  CHECK(choices > 0, "a victim is drawn");
  // The faster pages are overwritten, the emptier blocks are: search for the rate that leaves
  // `load`.
  double slow = 1e-9;
  double fast = 1e9;
  for (int step = 0; step < 100; ++step) {
    const double middle = std::sqrt(slow * fast);
    (sum_from_one(tails(pages, middle, choices)) > load * pages ? slow : fast) = middle;
  }
  const double rate = std::sqrt(slow * fast);
  const std::vector<double> tail = tails(pages, rate, choices);
  MeanField found{.valid = std::vector<double>(pages + 1),
                  .write_amplification = 1 / (rate * load)};
  for (uint32_t i = 0; i <= pages; ++i) found.valid[i] = tail[i] - tail[i + 1];
  return found;
}

std::vector<double> steady_state(GcPolicy policy, uint32_t pages, double load, uint32_t choices,
                                 uint32_t invalid_min) {
  constexpr uint32_t kAsGoodAsGreedy = 30;
  switch (policy) {
    case GcPolicy::kGreedy:
    case GcPolicy::kFifo:
      return best_of(pages, load, kAsGoodAsGreedy);
    case GcPolicy::kRga:
      return best_of(pages, load, choices);
    case GcPolicy::kRandom:
    case GcPolicy::kRandomP:
      return random_choice(pages, load);
    case GcPolicy::kRandomPp:
      return random_above(pages, load, invalid_min);
  }
  return {};
}

}  // namespace cairn::flash
