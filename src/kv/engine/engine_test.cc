// SPDX-License-Identifier: Apache-2.0
#include "kv/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"

namespace cairn::kv::engine {
namespace {

using task::Task;

// Takes as long for each command as it is told, and counts.
class SlowKeyspace final : public Keyspace {
 public:
  explicit SlowKeyspace(env::Env& env) : env_(env) {}
  Task<Result<std::optional<Entry>>> get(std::string_view) override {
    co_await work();
    co_return std::optional<Entry>();
  }
  Task<Result<std::optional<Meta>>> look(std::string_view) override {
    co_await work();
    co_return std::optional<Meta>();
  }
  Task<Result<void>> transact(std::span<const std::string_view> keys, Change& change) override {
    std::vector<std::optional<Entry>> now(keys.size());
    std::vector<Edit> edits(keys.size());
    const Result<void> decided = change.decide(now, edits);
    co_await work();
    co_return decided;
  }
  Task<Result<ScanPage>> scan(uint64_t, size_t) override { co_return ScanPage(); }
  Task<Result<std::optional<std::string>>> random_key() override {
    co_return std::optional<std::string>();
  }
  Task<Result<void>> clear() override { co_return Result<void>(); }
  uint64_t size() const override { return 0; }

  Duration time = 100_us;
  uint64_t at_once = 0;
  uint64_t at_once_max = 0;

 private:
  Task<void> work() {
    at_once_max = std::max(at_once_max, ++at_once);
    EXPECT_TRUE((co_await task::sleep_for(env_, time)).has_value());
    --at_once;
  }
  env::Env& env_;
};

class EraseAll final : public Change {
 public:
  explicit EraseAll(const Scheduler& scheduler) : Change(Needs::kNothing), scheduler_(scheduler) {}
  Result<void> decide(std::span<const std::optional<Entry>>, std::span<Edit> edits) override {
    active_before = scheduler_.active();
    for (Edit& edit : edits) edit.kind = Edit::Kind::kErase;
    return {};
  }
  uint64_t active_before = 0;

 private:
  const Scheduler& scheduler_;
};

Task<void> get_many(Engine& engine, Time until, env::Env& env, int at_once) {
  std::vector<Task<void>> workers;
  const auto work = [](Engine& its, Time end, env::Env& world) -> Task<void> {
    while (world.now() < end) EXPECT_TRUE((co_await its.get("k")).has_value());
  };
  for (int i = 0; i < at_once; ++i) workers.push_back(work(engine, until, env));
  co_await task::when_all(std::move(workers));
}

SIM_TEST(Engine, TenantsShareByTheirWeights) {
  SlowKeyspace below(env);
  Scheduler scheduler(env, {.tokens_min = 30, .tokens_max = 120});
  Engine one(env, below, scheduler, 1, {});
  Engine three(env, below, scheduler, 3, {});
  const Time until = env.now() + 1_s;
  co_await task::when_all(get_many(one, until, env, 200), get_many(three, until, env, 200));
  const auto ratio =
      static_cast<double>(three.tenant().served()) / static_cast<double>(one.tenant().served());
  EXPECT_NEAR(ratio, 3.0, 0.1);
  EXPECT_LE(below.at_once_max, 120u / kGetTokens);
  EXPECT_EQ(scheduler.active(), 0u);
}

SIM_TEST(Engine, ASlowDriveGetsFewerCommandsAtOnce) {
  SlowKeyspace below(env);
  Scheduler scheduler(env, {.latency_target = 1_ms, .tokens_min = 30, .tokens_max = 600});
  Engine engine(env, below, scheduler, 1, {});
  co_await get_many(engine, env.now() + 1_s, env, 400);
  EXPECT_EQ(scheduler.tokens(), 600u);
  below.time = 5_ms;
  co_await get_many(engine, env.now() + 1_s, env, 400);
  EXPECT_EQ(scheduler.tokens(), 30u);
  below.time = 100_us;
  co_await get_many(engine, env.now() + 1_s, env, 400);
  EXPECT_EQ(scheduler.tokens(), 600u);
}

SIM_TEST(Engine, WaitingIsBoundedInNumberAndTime) {
  SlowKeyspace below(env);
  below.time = 3_s;
  Scheduler scheduler(env, {.tokens_min = 6, .tokens_max = 24, .waiting_max = 10});
  Engine engine(env, below, scheduler, 1, {.wait_max = 1_s});
  std::vector<Task<Result<std::optional<Entry>>>> getting;
  for (int i = 0; i < 20; ++i) getting.push_back(engine.get("k"));
  std::vector<int> counts(3);
  for (const auto& done : co_await task::when_all(std::move(getting))) {
    if (done) ++counts[0];
    if (!done && done.error() == Errc::kTimedOut) ++counts[1];
    if (!done && done.error() == Errc::kLimit) ++counts[2];
  }
  EXPECT_EQ(counts, (std::vector<int>{2, 10, 8}));
  EXPECT_EQ(engine.tenant().waiting(), 0u);
  EXPECT_EQ(scheduler.active(), 0u);
}

SIM_TEST(Engine, AChangeThatOnlyErasesCostsLess) {
  SlowKeyspace below(env);
  Scheduler scheduler(env, {});
  Engine engine(env, below, scheduler, 1, {});
  EraseAll change(scheduler);
  const std::string_view keys[] = {"a", "b"};
  Task<Result<void>> erasing = engine.transact(keys, change);
  EXPECT_EQ(change.active_before, 2 * kPutTokens);
  EXPECT_EQ(scheduler.active(), 2 * kDelTokens);
  EXPECT_EQ(engine.free_tokens(), scheduler.tokens() - 2 * kDelTokens);
  EXPECT_TRUE((co_await erasing).has_value());
  EXPECT_EQ(scheduler.active(), 0u);
}

// What needs more tokens than there are runs alone, and is not overtaken for ever.
SIM_TEST(Engine, ALargeChangeIsNotOvertakenForEver) {
  SlowKeyspace below(env);
  Scheduler scheduler(env, {.tokens_min = 16, .tokens_max = 64});
  Engine small(env, below, scheduler, 1, {});
  Engine large(env, below, scheduler, 1, {});
  Task<void> getting = get_many(small, env.now() + 200_ms, env, 100);
  EraseAll change(scheduler);
  const std::vector<std::string_view> keys(50, "k");
  const Time began = env.now();
  EXPECT_TRUE((co_await large.transact(keys, change)).has_value());
  EXPECT_LT(env.now() - began, 100_ms);
  co_await getting;
}

}  // namespace
}  // namespace cairn::kv::engine
