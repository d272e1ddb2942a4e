// SPDX-License-Identifier: Apache-2.0
#include "model/net/dcqcn.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cairn::net {
namespace {

constexpr uint64_t kLine = 10'000'000'000;
constexpr Picos kFirst = kMillisecond;

Dcqcn notified_once(const DcqcnParameters& p) {
  Dcqcn flow(kLine);
  flow.notify(kFirst, kFirst, p);
  return flow;
}

TEST(Dcqcn, SendsAtLineRateUntilNotified) {
  const DcqcnParameters p;
  Dcqcn flow(kLine);
  EXPECT_EQ(flow.rate(kSecond, kSecond, p), kLine);
}

TEST(Dcqcn, FirstDecreaseHalves) {
  const DcqcnParameters p;
  Dcqcn flow = notified_once(p);
  const Picos check = kFirst + p.decrease_interval + kNanosecond;
  EXPECT_EQ(flow.rate(check - 1, 0, p), kLine);
  // Alpha is 1 at the first notification and decays once before the check, just before it.
  const double alpha = 1 - p.gain;
  EXPECT_NEAR(static_cast<double>(flow.rate(check, check, p)), kLine * (1 - alpha / 2), 1);
  EXPECT_EQ(flow.target(), kLine);
}

TEST(Dcqcn, AlphaDecaysGeometrically) {
  const DcqcnParameters p;
  Dcqcn flow = notified_once(p);
  for (const int steps : {1, 10, 100, 5000}) {
    const Picos at = kFirst + steps * p.alpha_interval;
    flow.rate(at, at, p);
    EXPECT_NEAR(flow.alpha(), std::pow(1 - p.gain, steps), 1e-9) << steps;
  }
}

TEST(Dcqcn, AlphaGoesToOneUnderMarks) {
  const DcqcnParameters p;
  Dcqcn flow(kLine);
  double alpha = 1;
  flow.notify(kFirst, kFirst, p);
  for (int i = 1; i < 50; ++i) {  // a pause between marks: alpha falls
    const Picos at = kFirst + i * p.alpha_interval;
    flow.rate(at, at, p);
    alpha *= 1 - p.gain;
  }
  EXPECT_NEAR(flow.alpha(), alpha, 1e-12);
  for (int i = 50; i < 100; ++i) {  // a mark in every interval: it rises
    flow.notify(kFirst + i * p.alpha_interval - kMicrosecond, 0, p);
    const Picos at = kFirst + i * p.alpha_interval;
    flow.rate(at, at, p);
    alpha = (1 - p.gain) * alpha + p.gain;
  }
  EXPECT_NEAR(flow.alpha(), alpha, 1e-12);
}

TEST(Dcqcn, RecoversByHalvesThenAddsThenHurries) {
  const DcqcnParameters p;
  Dcqcn flow = notified_once(p);
  const Picos cut = kFirst + p.decrease_interval + kNanosecond;
  double rate = static_cast<double>(flow.rate(cut, cut, p));
  double target = kLine;
  for (int step = 1; step <= 12; ++step) {
    const Picos at = cut + step * p.increase_interval;
    if (step == 6) target = std::min<double>(target + 40e6, kLine);
    if (step > 6) target = std::min<double>(target + 100e6, kLine);
    rate = (rate + target) / 2;
    EXPECT_NEAR(static_cast<double>(flow.rate(at, at, p)), rate, 20) << step;
    EXPECT_EQ(flow.stage(), static_cast<uint32_t>(step));
  }
}

TEST(Dcqcn, SecondCutTakesTheReachedRateAsTarget) {
  const DcqcnParameters p;
  Dcqcn flow = notified_once(p);
  // Fast recovery has run ten times when the next mark comes.
  const Picos mark = kFirst + 12 * p.increase_interval;
  const uint64_t reached = flow.rate(mark, mark, p);
  flow.notify(mark, mark, p);
  const Picos later = mark + p.decrease_interval + kMicrosecond;
  EXPECT_LT(flow.rate(later, later, p), reached);
  EXPECT_GE(flow.target(), reached);
}

TEST(Dcqcn, NeverBelowTheMinimum) {
  const DcqcnParameters p;
  Dcqcn flow(kLine);
  uint64_t rate = kLine;
  for (int i = 0; i < 2000; ++i) {
    const Picos at = kFirst + i * 10 * kMicrosecond;
    flow.notify(at, at, p);
    rate = flow.rate(at, at, p);
  }
  EXPECT_EQ(rate, p.min_bits_per_s);
}

TEST(Dcqcn, LookingOftenOrSeldomIsTheSame) {
  const DcqcnParameters p;
  Dcqcn often = notified_once(p);
  Dcqcn seldom = notified_once(p);
  for (Picos at = kFirst; at < kFirst + 20 * kMillisecond; at += 7 * kMicrosecond) {
    often.rate(at, at, p);
  }
  const Picos end = kFirst + 20 * kMillisecond;
  EXPECT_EQ(often.rate(end, end, p), seldom.rate(end, end, p));
  EXPECT_DOUBLE_EQ(often.alpha(), seldom.alpha());
}

}  // namespace
}  // namespace cairn::net
