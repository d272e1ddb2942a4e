// SPDX-License-Identifier: Apache-2.0
// The clock and what happens by it: never early, in order, once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/task.h"
#include "task/timer.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Env;
using task::CancelSource;
using task::Deadline;
using task::Event;
using task::Task;
using task::Timer;

WORLD_TEST_SUITE(Clock);

// What fired, in order, and a wait until enough has.
struct Log {
  std::vector<int> fired;
  size_t expected = 0;
  Event complete;
};

struct Alarm : Timer {
  Alarm(Env& owner, Log& to, int number) : Timer(&on_time), env(owner), log(to), id(number) {}
  static void on_time(Timer& timer) {
    auto& self = static_cast<Alarm&>(timer);
    EXPECT_FALSE(self.is_armed());
    self.fired_at = self.env.now();
    self.log.fired.push_back(self.id);
    if (self.log.fired.size() == self.log.expected) self.log.complete.set();
  }
  Env& env;
  Log& log;
  int id;
  Time fired_at;
};

Task<void> wait_for_all(Log& log) {
  const Result<void> waited = co_await log.complete.wait();
  must(waited);
}

WORLD_TEST(Clock, StandsOrMovesForward) {
  Time last = env.now();
  for (int i = 0; i < 1000; ++i) {
    co_await turn(env);
    EXPECT_GE(env.now(), last);
    last = env.now();
  }
}

WORLD_TEST(Clock, WallTimeIsAfter2020) {
  constexpr int64_t kStartOf2020Seconds = 1'577'836'800;
  EXPECT_GT(env.wall_now().ns, kStartOf2020Seconds * 1'000'000'000);
  co_return;
}

WORLD_TEST(Clock, TimersOfOneTimeFireInTheOrderTheyWereArmed) {
  Log log{.expected = 200};
  std::deque<Alarm> alarms;
  const Time when = env.now() + 3_ms;
  for (int i = 0; i < 200; ++i) env.arm(alarms.emplace_back(env, log, i), when);
  co_await wait_for_all(log);
  EXPECT_TRUE(std::ranges::is_sorted(log.fired));
}

WORLD_TEST(Clock, EarlierTimersFireFirst) {
  Log log{.expected = 100};
  std::deque<Alarm> alarms;
  const Time start = env.now();
  // Armed latest first; 10 us apart is well above the finest tick a world may have.
  for (int i = 99; i >= 0; --i) env.arm(alarms.emplace_back(env, log, i), start + 1_ms + i * 10_us);
  co_await wait_for_all(log);
  EXPECT_TRUE(std::ranges::is_sorted(log.fired));
}

WORLD_TEST(Clock, PastTimeFiresOnTheNextTurnNotInsideArm) {
  Log log{.expected = 3};
  Alarm past(env, log, 0);
  Alarm present(env, log, 1);
  Alarm ancient(env, log, 2);
  env.arm(past, env.now() + Duration{-1'000'000});
  env.arm(present, env.now());
  env.arm(ancient, Time{0});
  EXPECT_TRUE(log.fired.empty());
  EXPECT_TRUE(past.is_armed());
  co_await wait_for_all(log);
  EXPECT_EQ(log.fired.size(), 3u);
}

WORLD_TEST(Clock, DisarmedAndDestroyedTimersStaySilent) {
  Log log{.expected = 1};
  Alarm disarmed(env, log, 0);
  auto destroyed = std::make_unique<Alarm>(env, log, 1);
  Alarm last(env, log, 2);
  env.arm(disarmed, env.now() + 1_ms);
  env.arm(*destroyed, env.now() + 1_ms);
  env.arm(last, env.now() + 2_ms);
  env.disarm(disarmed);
  env.disarm(disarmed);
  destroyed.reset();
  EXPECT_FALSE(disarmed.is_armed());
  co_await wait_for_all(log);
  EXPECT_EQ(log.fired, (std::vector{2}));
}

WORLD_TEST(Clock, DisarmedTimerMayBeArmedAgain) {
  Log log{.expected = 1};
  Alarm alarm(env, log, 7);
  env.arm(alarm, env.now() + 1000_s);
  env.disarm(alarm);
  env.arm(alarm, env.now() + 1_ms);
  co_await wait_for_all(log);
  EXPECT_EQ(log.fired, (std::vector{7}));
}

struct Canceller : Timer {
  Canceller(Env& owner, Timer& other) : Timer(&on_time), env(owner), victim(other) {}
  static void on_time(Timer& timer) {
    auto& self = static_cast<Canceller&>(timer);
    self.env.disarm(self.victim);
  }
  Env& env;
  Timer& victim;
};

WORLD_TEST(Clock, TimerMayDisarmAnotherThatIsDueWithIt) {
  Log log{.expected = 1};
  Alarm victim(env, log, 0);
  Alarm last(env, log, 1);
  Canceller canceller(env, victim);
  const Time when = env.now() + 1_ms;
  env.arm(canceller, when);
  env.arm(victim, when);
  env.arm(last, when);
  co_await wait_for_all(log);
  EXPECT_EQ(log.fired, (std::vector{1}));
}

struct Ticker : Timer {
  Ticker(Env& owner, int rounds) : Timer(&on_time), env(owner), left(rounds) {}
  static void on_time(Timer& timer) {
    auto& self = static_cast<Ticker&>(timer);
    if (--self.left == 0) return self.done.set();
    self.env.arm(self, self.env.now() + 20_us);
  }
  Env& env;
  int left;
  Event done;
};

WORLD_TEST(Clock, TimerMayArmItselfAgainWhileItFires) {
  Ticker ticker(env, 500);
  env.arm(ticker, env.now());
  const Result<void> waited = co_await ticker.done.wait();
  EXPECT_EQ(outcome(waited), "ok");
}

WORLD_TEST(Clock, ThousandsFireOnceAndNeverEarly) {
  constexpr int kCount = 10'000;
  Log log{.expected = kCount};
  std::deque<Alarm> alarms;
  std::vector<Time> wanted;
  const Time start = env.now();
  for (int i = 0; i < kCount; ++i) {
    wanted.push_back(start + Duration{static_cast<int64_t>(env.rng().below(50'000'000))});
    env.arm(alarms.emplace_back(env, log, i), wanted.back());
  }
  co_await wait_for_all(log);
  std::vector<int> ids = log.fired;
  std::ranges::sort(ids);
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(ids[static_cast<size_t>(i)], i);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_GE(alarms[i].fired_at, wanted[i]);
}

WORLD_TEST(Clock, NeverIsNotReached) {
  Log log{.expected = 1};
  Alarm never(env, log, 0);
  Alarm soon(env, log, 1);
  env.arm(never, Time::never());
  env.arm(soon, env.now() + 1_ms);
  co_await wait_for_all(log);
  EXPECT_EQ(log.fired, (std::vector{1}));
  EXPECT_TRUE(never.is_armed());
}

WORLD_TEST(Clock, SleepersWakeInOrder) {
  std::vector<Task<Result<void>>> sleeps;
  const Time start = env.now();
  for (int i = 0; i < 100; ++i) sleeps.push_back(doze(env, (i % 10) * 1_ms));
  for (size_t i = 0; i < sleeps.size(); ++i) {
    const Result<void> slept = co_await sleeps[i];
    EXPECT_EQ(outcome(slept), "ok");
    EXPECT_GE(env.now() - start, static_cast<int64_t>(i % 10) * 1_ms);
  }
}

WORLD_TEST(Clock, DeadlineEndsAWaitWithTimedOut) {
  Event never;
  const Time start = env.now();
  Deadline deadline(env, start + 5_ms);
  const Result<void> waited = co_await never.wait(deadline.token());
  EXPECT_EQ(outcome(waited), "timed_out");
  EXPECT_TRUE(deadline.expired());
  EXPECT_GE(env.now() - start, 5_ms);
}

WORLD_TEST(Clock, DeadlineInThePastEndsTheNextWait) {
  Event never;
  Deadline deadline(env, env.now());
  const Result<void> waited = co_await never.wait(deadline.token());
  EXPECT_EQ(outcome(waited), "timed_out");
}

WORLD_TEST(Clock, DeadlineThatIsNotReachedChangesNothing) {
  Event soon;
  Deadline deadline(env, env.now() + 1000_s);
  Task<Result<void>> sleep = doze(env, 1_ms);
  const Result<void> slept = co_await sleep;
  EXPECT_EQ(outcome(slept), "ok");
  soon.set();
  const Result<void> waited = co_await soon.wait(deadline.token());
  EXPECT_EQ(outcome(waited), "ok");
  EXPECT_FALSE(deadline.expired());
}

}  // namespace
}  // namespace cairn::conformance
