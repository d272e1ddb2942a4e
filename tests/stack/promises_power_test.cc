// SPDX-License-Identifier: Apache-2.0
// What survives a power loss, for every service and every pair: what a flush covers, what was
// written durably, and of any other block one of its values, whole. The drive is full before, so
// that changes reach every place where a service keeps blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "stack/promise_host.h"
#include "stack/subjects.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

using DiskKind = env::DiskOp::Kind;

// Some flushes of disks fail while others are under way. Power is lost in the very moment in which
// the drive says that one is done.
void expect_flushes_cover(const std::string& stack, uint64_t seeds, int lives) {
  for (const uint64_t seed : sim::seeds_to_run(seeds)) {
    PromiseHost host(seed, {.stack = stack,
                            .requests = UINT64_MAX,
                            .cancel_share = 0,
                            .errors_are_wrong = false,
                            .faults_come_late = true,
                            .fills = true,
                            .flush_share = 0.3,
                            .durable_share = 0.05});
    for (int life = 0; life < lives && host.failure().empty(); ++life) {
      uint64_t failures = host.rng().below(4);
      host.set_break([&](uint64_t, const env::DiskOp::Request& request) -> Result<void> {
        if (request.kind != DiskKind::kFlush || failures == 0 || host.rng().bernoulli(0.6))
          return {};
        --failures;
        return fail(Errc::kIo, "a flush of the test");
      });
      host.start();
      ASSERT_TRUE(host.runs_until_flushed(1 + host.rng().below(8))) << stack << seed;
      host.crash();
    }
    host.stop_breaking();
    host.start();
    ASSERT_TRUE(host.runs_until_done(20)) << stack << seed;
    ASSERT_EQ(host.failure(), "") << "seed " << seed;
  }
}

void expect_durable_writes_last(const std::string& stack, uint64_t seeds, int lives) {
  for (const uint64_t seed : sim::seeds_to_run(seeds)) {
    PromiseHost host(seed, {.stack = stack,
                            .requests = UINT64_MAX,
                            .cancel_share = 0,
                            .fills = true,
                            .durable_share = 0.8});
    for (int life = 0; life < lives && host.failure().empty(); ++life) {
      host.start();
      ASSERT_TRUE(host.runs_until_durable(1 + host.rng().below(20))) << stack << seed;
      host.crash();
    }
    host.start();
    ASSERT_TRUE(host.runs_until_done(20)) << stack << seed;
    ASSERT_EQ(host.failure(), "") << "seed " << seed;
  }
}

// Blocks are noise: one that is half old and half new is neither.
void expect_no_torn_block(const std::string& stack, uint64_t seeds, int lives) {
  for (const uint64_t seed : sim::seeds_to_run(seeds)) {
    PromiseHost host(seed, {.stack = stack,
                            .workers = 16,
                            .requests = UINT64_MAX,
                            .cancel_share = 0.02,
                            .is_noise = true,
                            .fills = true,
                            .durable_share = 0});
    for (int life = 0; life < lives && host.failure().empty(); ++life) {
      host.start();
      ASSERT_TRUE(host.runs_until_done(host.rng().below(60))) << stack << seed;
      host.run_for(Duration{static_cast<int64_t>(host.rng().below(500'000))});
      host.crash();
    }
    host.start();
    ASSERT_TRUE(host.runs_until_done(20)) << stack << seed;
    ASSERT_EQ(host.failure(), "") << "seed " << seed;
  }
}

// What a killed program wrote can be read by the next one, and may be in the caches of disks alone
// when power fails soon after that.
void expect_kills_harm_nothing(const std::string& stack, uint64_t seeds, int lives) {
  for (const uint64_t seed : sim::seeds_to_run(seeds)) {
    PromiseHost host(seed, {.stack = stack,
                            .requests = UINT64_MAX,
                            .cancel_share = 0,
                            .fills = true,
                            .flush_share = 0.1,
                            .durable_share = 0.3});
    for (int life = 0; life < lives && host.failure().empty(); ++life) {
      host.start();
      ASSERT_TRUE(host.runs_until_done(10 + host.rng().below(60))) << stack << seed;
      host.run_for(Duration{static_cast<int64_t>(host.rng().below(500'000))});
      host.kill();
      host.start();
      ASSERT_TRUE(host.runs_until_done(host.rng().below(30))) << stack << seed;
      host.run_for(Duration{static_cast<int64_t>(host.rng().below(500'000))});
      host.crash();
    }
    host.start();
    ASSERT_TRUE(host.runs_until_done(20)) << stack << seed;
    ASSERT_EQ(host.failure(), "") << "seed " << seed;
  }
}

// Services that keep in memory where data lies, until a flush.
constexpr std::string_view kMapped[] = {"thin", "snapshot", "spillover", "compress", "dedup"};

bool keeps_through_a_kill(const std::string& stack) {
  const bool is_write_back =
      stack.contains("cache(") && !stack.contains("memory=") && !stack.contains("mode=through");
  return !is_write_back && std::ranges::none_of(kMapped, [&](std::string_view name) {
    return stack.contains(std::string(name) + "(");
  });
}

// A guest outlives the program: what completed and was not flushed is there for it, or the drive
// has another local_opening.
void expect_kills_take_nothing(const std::string& stack, uint64_t seeds, int lives) {
  for (const uint64_t seed : sim::seeds_to_run(seeds)) {
    PromiseHost host(seed, {.stack = stack,
                            .requests = UINT64_MAX,
                            .cancel_share = 0,
                            .fills = true,
                            .flush_share = 0.02,
                            .durable_share = 0.1});
    for (int life = 0; life < lives && host.failure().empty(); ++life) {
      host.start();
      ASSERT_TRUE(host.runs_until_done(10 + host.rng().below(60))) << stack << seed;
      host.run_for(Duration{static_cast<int64_t>(host.rng().below(500'000))});
      host.kill();
    }
    host.start();
    ASSERT_TRUE(host.runs_until_done(20)) << stack << seed;
    ASSERT_EQ(host.failure(), "") << "seed " << seed;
    const auto kills = static_cast<uint64_t>(lives);
    EXPECT_EQ(host.load().kept(), keeps_through_a_kill(stack) ? kills : 0) << stack;
  }
}

class EveryServicePower : public testing::TestWithParam<Subject> {};
TEST_P(EveryServicePower, AFlushCoversWhatCompletedBeforeItThoughOthersFail) {
  expect_flushes_cover(GetParam().stack, 6, 5);
}
TEST_P(EveryServicePower, DurableChangesLastAsSoonAsTheyAreDone) {
  expect_durable_writes_last(GetParam().stack, 3, 5);
}
TEST_P(EveryServicePower, AKillBeforeItHarmsNoBlock) {
  expect_kills_harm_nothing(GetParam().stack, 20, 5);
}
TEST_P(EveryServicePower, AKillAloneTakesNothingUntold) {
  expect_kills_take_nothing(GetParam().stack, 10, 5);
}
TEST_P(EveryServicePower, NoBlockIsTorn) { expect_no_torn_block(GetParam().stack, 3, 5); }
INSTANTIATE_TEST_SUITE_P(Promises, EveryServicePower, testing::ValuesIn(every_service()),
                         subject_name);

class EveryPairPower : public testing::TestWithParam<Subject> {};
TEST_P(EveryPairPower, AFlushCoversWhatCompletedBeforeItThoughOthersFail) {
  expect_flushes_cover(GetParam().stack, 1, 3);
}
TEST_P(EveryPairPower, DurableChangesLastAsSoonAsTheyAreDone) {
  expect_durable_writes_last(GetParam().stack, 1, 2);
}
TEST_P(EveryPairPower, AKillBeforeItHarmsNoBlock) {
  expect_kills_harm_nothing(GetParam().stack, 1, 2);
}
TEST_P(EveryPairPower, AKillAloneTakesNothingUntold) {
  expect_kills_take_nothing(GetParam().stack, 1, 3);
}
INSTANTIATE_TEST_SUITE_P(Promises, EveryPairPower, testing::ValuesIn(every_pair()), subject_name);

}  // namespace
}  // namespace cairn::stack
