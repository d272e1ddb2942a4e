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

}  // namespace cairn::flash
