// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_limiter.h"

#include <gtest/gtest.h>

namespace cairn::nvme {
namespace {

const AuthLimiter::Who kThere = {env::Address::ip4(10, 0, 0, 1, 1000), "nqn.there"};
constexpr Duration kWaitMax = 15_s;
const Time kStart = Time{} + 1000_s;

TEST(AuthLimiter, WhoNeverFailedIsAnsweredAtOnce) {
  AuthLimiter limiter;
  EXPECT_EQ(limiter.take_turn(kThere, kStart, kWaitMax), kStart);
  EXPECT_EQ(limiter.entries(), 0u);
}

TEST(AuthLimiter, PausesGrowUpToTheirMax) {
  AuthLimiter limiter;
  Time now = kStart;
  Duration last = 0_s;
  for (int i = 0; i < 20; ++i) {
    limiter.failed(kThere, now);
    const Result<Time> turn = limiter.take_turn(kThere, now, kWaitMax);
    ASSERT_TRUE(turn);
    EXPECT_GE(*turn - now, last);
    last = *turn - now;
    now = *turn;
  }
  EXPECT_GE(last, AuthLimiter::kPauseMax);
  EXPECT_LE(last, AuthLimiter::kPauseMax * 2);
}

TEST(AuthLimiter, HostsAreToldApartByAddressAndName) {
  AuthLimiter limiter;
  limiter.failed(kThere, kStart);
  const AuthLimiter::Who port = {env::Address::ip4(10, 0, 0, 1, 2000), kThere.host_nqn};
  const AuthLimiter::Who address = {env::Address::ip4(10, 0, 0, 2, 1000), kThere.host_nqn};
  const AuthLimiter::Who name = {kThere.peer, "nqn.other"};
  EXPECT_GT(*limiter.take_turn(port, kStart, kWaitMax), kStart);
  EXPECT_EQ(limiter.take_turn(address, kStart, kWaitMax), kStart);
  EXPECT_EQ(limiter.take_turn(name, kStart, kWaitMax), kStart);
}

TEST(AuthLimiter, NobodyWaitsLongerThanItCan) {
  AuthLimiter limiter;
  for (int i = 0; i < 10; ++i) limiter.failed(kThere, kStart);
  EXPECT_EQ(limiter.take_turn(kThere, kStart, 1_s).error(), Errc::kLimit);
  const Result<Time> turn = limiter.take_turn(kThere, kStart, AuthLimiter::kPauseMax);
  ASSERT_TRUE(turn) << "who was refused has taken no turn";
  EXPECT_LE(*turn - kStart, AuthLimiter::kPauseMax);
}

TEST(AuthLimiter, AttemptsSideBySideTakeTurnsAndTooManyAreRefused) {
  AuthLimiter limiter;
  for (int i = 0; i < 10; ++i) limiter.failed(kThere, kStart);
  Time last = kStart;
  int answered = 0;
  for (;; ++answered) {
    const Result<Time> turn = limiter.take_turn(kThere, kStart, kWaitMax);
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
  EXPECT_EQ(limiter.take_turn(kThere, kStart, kWaitMax), kStart);
  limiter.failed(kThere, kStart);
  const Time later = kStart + AuthLimiter::kMemory + 1_s;
  EXPECT_EQ(limiter.take_turn(kThere, later, kWaitMax), later);
  EXPECT_EQ(limiter.entries(), 0u);
}

TEST(AuthLimiter, TheTableIsBoundedAndForgetsTheOldest) {
  AuthLimiter limiter;
  const auto who = [](size_t i) {
    return AuthLimiter::Who{
        env::Address::ip4(10, 1, static_cast<uint8_t>(i / 256), static_cast<uint8_t>(i), 1), ""};
  };
  for (size_t i = 0; i < AuthLimiter::kEntriesMax + 1; ++i) {
    limiter.failed(who(i), kStart + 1_ms * static_cast<int64_t>(i));
  }
  EXPECT_EQ(limiter.entries(), AuthLimiter::kEntriesMax);
  const Time now = kStart + 1_ms;
  EXPECT_EQ(limiter.take_turn(who(0), now, kWaitMax), now);
  EXPECT_GT(*limiter.take_turn(who(1), now, kWaitMax), now);
}

}  // namespace
}  // namespace cairn::nvme
