// SPDX-License-Identifier: Apache-2.0
#include "stack/health_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stack/live_stack.h"
#include "task/deadline.h"
#include "testing/sim_test.h"
#include "testing/stack/redundant.h"

namespace cairn::drive {
namespace {

// One live stack, watched, with the lines that were told.
class Watched final : public HealthWatch::Owner {
 public:
  explicit Watched(env::Env& env)
      : env_(env), watch(env, *this, [this](const HealthChange& change) {
          lines.push_back(fmt::format(
              "{}: drive {} is {}{}: {}", name(change.severity), change.drive, name(change.now),
              change.is_over && change.now == Health::kOk ? " again" : "", change.what));
        }) {}

  task::Task<bool> open(std::string text) {
    LiveOpened opened = co_await open_live_stack(env_, *Stack::parse(text), leaves_);
    EXPECT_TRUE(opened) << opened.error().text;
    if (opened) stack = std::move(*opened);
    co_return stack != nullptr;
  }
  task::Task<void> close() {
    co_await watch.close();
    if (stack != nullptr) co_await stack->close();
    stack = nullptr;
    leaves_.close();
  }
  // A line with all of these, else a failed test; those before it are forgotten.
  task::Task<void> until_told(std::vector<std::string> parts) {
    for (int i = 0; i < 100; ++i) {
      for (size_t at = 0; at < lines.size(); ++at) {
        const auto has = [&](const std::string& part) {
          return lines[at].find(part) != std::string::npos;
        };
        if (!std::ranges::all_of(parts, has)) continue;
        lines.erase(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(at) + 1);
        co_return;
      }
      const Result<void> slept = co_await task::sleep_for(env_, 100_ms);
      EXPECT_TRUE(slept);
    }
    ADD_FAILURE() << parts[0] << " was not told: " << fmt::format("{}", fmt::join(lines, "\n"));
  }
  const WatchedDrive& seen() const { return *watch.find("d0"); }

  std::vector<std::string> lines;
  std::unique_ptr<LiveStack> stack;
  size_t looks = 0;

 private:
  task::Task<std::vector<DriveHealth>> look() override {
    ++looks;
    std::vector<DriveHealth> all;
    if (stack == nullptr) co_return all;
    all.push_back({"d0", stack->health()});
    co_return all;
  }

  env::Env& env_;
  SourceLeaves leaves_;

 public:
  HealthWatch watch;
};

task::Task<void> lose_and_return(env::Env& env, sim::Medium& leg) {
  Watched watched(env);
  const bool opened =
      co_await watched.open("limit(mirror(file:a,size=4M, file:b,size=4M), iops=100000)");
  CO_ASSERT_TRUE(opened);
  watched.watch.start();
  co_await watched.watch.look();
  EXPECT_EQ(watched.seen().now.health, Health::kOk);
  EXPECT_TRUE(watched.lines.empty());
  leg.fail_writes();
  leg.fail_reads();
  co_await write_value(*watched.stack, 0, 5);
  co_await watched.until_told({"degraded: ",
                               "drive d0 is degraded: mirror (layer 0.0), drive "
                               "file:b,size=4M (layer 0.0.1): leg lost: it failed"});
  EXPECT_EQ(watched.seen().now.health, Health::kDegraded);
  // Nothing changes, and nothing more is said.
  const size_t looks = watched.looks;
  while (watched.looks < looks + 3) {
    const Result<void> slept = co_await task::sleep_for(env, 1_s);
    EXPECT_TRUE(slept);
  }
  EXPECT_TRUE(watched.lines.empty());
  leg.heal();
  co_await watched.until_told(
      {"ok: ",
       "drive d0 is ok again: mirror (layer 0.0), drive file:b,size=4M (layer 0.0.1): leg"});
  EXPECT_EQ(watched.seen().now.health, Health::kOk);
  co_await watched.close();
}

TEST(HealthWatch, TellsEachChangeOnceWithLayerLegAndWhatToDo) {
  sim::Cluster cluster;
  sim::Medium& leg = cluster.node("host").disk("b");
  run_in_sim(cluster, [&leg](env::Env& env) { return lose_and_return(env, leg); });
}

// A leg that missed writes is copied to at a known rate: time left is what that takes.
task::Task<void> estimate(env::Env& env, sim::Medium& leg) {
  Watched watched(env);
  const bool opened =
      co_await watched.open("mirror(file:a,size=32M, file:b,size=32M, rate=1M, retry_ms=100)");
  CO_ASSERT_TRUE(opened);
  leg.fail_writes();
  for (uint64_t block = 0; block < 6144; block += 128) {
    co_await write_value(*watched.stack, block, 5, 128);
  }
  leg.heal();
  watched.watch.start();
  for (int i = 0; i < 20 && (watched.watch.find("d0") == nullptr || watched.seen().jobs.empty() ||
                             !watched.seen().jobs[0].left);
       ++i) {
    const Result<void> slept = co_await task::sleep_for(env, 500_ms);
    EXPECT_TRUE(slept);
  }
  CO_ASSERT_TRUE(!watched.seen().jobs.empty() && watched.seen().jobs[0].left);
  const WatchedJob& job = watched.seen().jobs[0];
  const double left = static_cast<double>(job.job.total - job.job.done) / (1 << 20);
  EXPECT_EQ(job.job.name, "resync");
  EXPECT_LT(job.percent, 100u);
  EXPECT_GT(job.left->seconds(), left * 0.5);
  EXPECT_LT(job.left->seconds(), left * 2 + 2);
  co_await watched.close();
}

TEST(HealthWatch, EstimatesHowLongAJobStillTakes) {
  sim::Cluster cluster;
  sim::Medium& leg = cluster.node("host").disk("b");
  run_in_sim(cluster, [&leg](env::Env& env) { return estimate(env, leg); });
}

SIM_TEST(HealthWatch, SleepsWhileNothingIsOpen) {
  Watched watched(env);
  watched.watch.start();
  const Result<void> slept = co_await task::sleep_for(env, 100_s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(watched.looks, 1u);
  co_await watched.close();
}

TEST(HealthWatch, WritesTimesAsPeopleAndProgramsReadThem) {
  EXPECT_EQ(text(WallTime{0}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(text(WallTime{1'794'826'923'999'999'999}), "2026-11-16T11:02:03Z");
}

}  // namespace
}  // namespace cairn::drive
