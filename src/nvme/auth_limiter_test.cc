// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth_limiter.h"

#include <gtest/gtest.h>

namespace cairn::nvme {
namespace {

const env::Address kThere = env::Address::ip4(10, 0, 0, 1, 1000);
const Time kStart = Time{} + 1000_s;

TEST(AuthLimiter, WhoNeverFailedIsAnsweredAtOnce) {
  AuthLimiter limiter;
  EXPECT_EQ(limiter.take_turn(kThere, kStart), kStart);
  EXPECT_EQ(limiter.addresses(), 0u);
}

TEST(AuthLimiter, PausesGrowUpToTheirMost) {
  AuthLimiter limiter;
  Time now = kStart;
  Duration last = 0_s;
  for (int i = 0; i < 20; ++i) {
    limiter.failed(kThere, now);
    const Result<Time> turn = limiter.take_turn(kThere, now);
    ASSERT_TRUE(turn);
    EXPECT_GE(*turn - now, last);
    last = *turn - now;
    now = *turn;
  }
  EXPECT_GE(last, AuthLimiter::kPauseMax);
  EXPECT_LE(last, AuthLimiter::kPauseMax * 2);
}

TEST(AuthLimiter, AnotherPortIsTheSameAddress) {
  AuthLimiter limiter;
  limiter.failed(kThere, kStart);
  EXPECT_GT(*limiter.take_turn(env::Address::ip4(10, 0, 0, 1, 2000), kStart), kStart);
  EXPECT_EQ(limiter.take_turn(env::Address::ip4(10, 0, 0, 2, 1000), kStart), kStart);
}

TEST(AuthLimiter, AttemptsSideBySideTakeTurnsAndTooManyAreRefused) {
  AuthLimiter limiter;
  for (int i = 0; i < 10; ++i) limiter.failed(kThere, kStart);
  Time last = kStart;
  int answered = 0;
  for (;; ++answered) {
    const Result<Time> turn = limiter.take_turn(kThere, kStart);
    if (!turn) break;
    EXPECT_GE(*turn - last, AuthLimiter::kPauseMax);
    last = *turn;
  }
  EXPECT_EQ(answered, 3);
}

TEST(AuthLimiter, SuccessAndTimeForget) {
  AuthLimiter limiter;
  limiter.failed(kThere, kStart);
  limiter.succeeded(kThere);
  EXPECT_EQ(limiter.take_turn(kThere, kStart), kStart);
  limiter.failed(kThere, kStart);
  const Time later = kStart + AuthLimiter::kMemory + 1_s;
  EXPECT_EQ(limiter.take_turn(kThere, later), later);
  EXPECT_EQ(limiter.addresses(), 0u);
}

TEST(AuthLimiter, TheTableIsBoundedAndForgetsTheOldest) {
  AuthLimiter limiter;
  const auto address = [](size_t i) {
    return env::Address::ip4(10, 1, static_cast<uint8_t>(i / 256), static_cast<uint8_t>(i), 1);
  };
  for (size_t i = 0; i < AuthLimiter::kAddressesMax + 1; ++i) {
    limiter.failed(address(i), kStart + 1_ms * static_cast<int64_t>(i));
  }
  EXPECT_EQ(limiter.addresses(), AuthLimiter::kAddressesMax);
  const Time now = kStart + 1_ms;
  EXPECT_EQ(limiter.take_turn(address(0), now), now);
  EXPECT_GT(*limiter.take_turn(address(1), now), now);
}

}  // namespace
}  // namespace cairn::nvme
