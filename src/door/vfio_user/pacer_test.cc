// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/pacer.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "task/deadline.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::door::vfio_user {
namespace {

using task::Task;

// Counts how often it is looked at.
class Watched final : public Device {
 public:
  void read(uint64_t, MutableBytes) override {}
  void write(uint64_t, Bytes) override {}
  bool poll() override {
    ++looks;
    return std::exchange(has_work, false);
  }
  bool is_enabled() const override { return enabled; }
  bool is_busy() const override { return busy; }
  void abandon(uint64_t, uint64_t) override {}
  void note_writes() override {}
  Task<void> reset() override { co_return; }
  Task<void> pause() override { co_return; }
  void resume() override {}
  Result<std::vector<std::byte>> save() override { return std::vector<std::byte>(); }
  Result<void> load(Bytes) override { return {}; }
  Task<void> close() override { co_return; }

  int looks = 0;
  bool has_work = false;
  bool enabled = true;
  bool busy = false;
};

struct Paced {
  Paced(env::Env& env, Glances& glances, Pace pace)
      : pacer(env, *env::sharing(env), glances, device, pace) {}
  Watched device;
  Pacer pacer;
};

Task<void> pass(env::Env& env, Duration time) {
  const Result<void> slept = co_await task::sleep_for(env, time);
  EXPECT_TRUE(slept.has_value());
}

// How often it is looked at in so much time.
Task<int> looks_in(env::Env& env, Watched& device, Duration time) {
  const int before = device.looks;
  co_await pass(env, time);
  co_return device.looks - before;
}

SIM_TEST(Pacer, PollingNeverRestsWhileTheDeviceIsEnabled) {
  Glances glances(env);
  Paced one(env, glances, Pace::kPolling);
  one.pacer.wake();
  co_await pass(env, 2_s);
  const int looks = co_await looks_in(env, one.device, 1_ms);
  EXPECT_GE(looks, 100);
  EXPECT_EQ(glances.count(), 0u);
  one.device.enabled = false;
  co_await pass(env, 1_ms);
  const int after = co_await looks_in(env, one.device, 1_s);
  EXPECT_EQ(after, 0);
}

SIM_TEST(Pacer, AdaptiveLooksLessOftenTheLongerThereIsNothing) {
  Glances glances(env);
  Paced one(env, glances, Pace::kAdaptive);
  one.pacer.wake();
  int looks = co_await looks_in(env, one.device, kLingerMin);
  EXPECT_GE(looks, 10);
  co_await pass(env, 10_ms);
  looks = co_await looks_in(env, one.device, 100_ms);
  EXPECT_EQ(looks, 100);
  // Work is found within a glance, and then it polls again.
  one.device.has_work = true;
  const Time given = env.now();
  while (one.device.has_work) co_await pass(env, 5_us);
  EXPECT_LE(env.now() - given, kGlance + 5_us);
  looks = co_await looks_in(env, one.device, kLingerMin / 2);
  EXPECT_GE(looks, 10);
  // With commands in flight it waits longer for more.
  one.device.busy = true;
  one.pacer.wake();
  co_await pass(env, kLingerBusy / 2);
  looks = co_await looks_in(env, one.device, kLingerBusy / 4);
  EXPECT_GE(looks, 50);
  one.device.busy = false;
  // After a while without any work it looks less often.
  co_await pass(env, kDoze + 10_ms);
  looks = co_await looks_in(env, one.device, 100_ms);
  EXPECT_EQ(looks, 20);
  one.pacer.rest();
  looks = co_await looks_in(env, one.device, 100_ms);
  EXPECT_EQ(looks, 0);
}

// How often a simulated core looks at its pollers.
constexpr Duration kLook = 1_us;

// A guest with one command at a time: it sends the next so long after it had its answer. Returns
// how long commands waited on average.
Task<Duration> asks(env::Env& env, Watched& device, Duration think, int commands) {
  Duration waited{};
  for (int i = 0; i < commands; ++i) {
    co_await pass(env, think);
    device.has_work = true;
    const Time given = env.now();
    while (device.has_work) co_await pass(env, 5_us);
    waited += env.now() - given;
  }
  co_return waited / commands;
}

SIM_TEST(Pacer, AdaptiveLearnsHowLongAGuestNeedsForItsNextCommand) {
  for (const Duration think : {60_us, 120_us, 250_us, 450_us}) {
    Glances glances(env);
    Paced one(env, glances, Pace::kAdaptive);
    one.pacer.wake();
    co_await asks(env, one.device, think, 10);
    const Duration waited = co_await asks(env, one.device, think, 100);
    EXPECT_LE(waited, 10_us) << think.ns;
    // It forgets what it learned when the guest has nothing to do for a while.
    co_await asks(env, one.device, 5_ms, 1);
    const int looks = co_await looks_in(env, one.device, 600_us);
    EXPECT_LE(looks, kLingerMin / kLook + 2) << think.ns;
  }
}

SIM_TEST(Pacer, AdaptiveDoesNotLookForLongForGuestsThatNeedLonger) {
  for (const Duration think : {700_us, 1200_us, 3_ms}) {
    Glances glances(env);
    Paced one(env, glances, Pace::kAdaptive);
    one.pacer.wake();
    co_await asks(env, one.device, think, 20);
    const Time began = env.now();
    const int before = one.device.looks;
    co_await asks(env, one.device, think, 500);
    // Not an eighth of the time, where one that polls has all of it.
    EXPECT_LE(one.device.looks - before, (env.now() - began) / kLook / 8) << think.ns;
  }
}

SIM_TEST(Pacer, DevicesOfACoreShareATimer) {
  Glances glances(env);
  std::vector<std::unique_ptr<Paced>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(std::make_unique<Paced>(env, glances, Pace::kAdaptive));
    all.back()->pacer.wake();
  }
  co_await pass(env, kDoze + 10_ms);
  const uint64_t before = glances.count();
  co_await pass(env, 1_s);
  EXPECT_EQ(glances.count() - before, 200u);  // wakes of the core, for all of them
  // One that has work does not make the others poll, and is looked at often itself.
  all[7]->device.has_work = true;
  co_await pass(env, kRareGlance);
  EXPECT_FALSE(all[7]->device.has_work);
  co_await pass(env, 1_ms);
  const int others = co_await looks_in(env, all[8]->device, 100_ms);
  EXPECT_LE(others, 101);
}

SIM_TEST(Pacer, AtAnInterruptsPaceNobodyLooksUntilTold) {
  Glances glances(env);
  Paced one(env, glances, Pace::kInterrupt);
  one.pacer.wake();
  const int looks = co_await looks_in(env, one.device, 1_s);
  EXPECT_EQ(looks, 0);
  one.device.has_work = true;
  one.pacer.ring();
  EXPECT_FALSE(one.device.has_work);
  const int after = co_await looks_in(env, one.device, 1_s);
  EXPECT_EQ(after, 0);
}

}  // namespace
}  // namespace cairn::door::vfio_user
