// SPDX-License-Identifier: Apache-2.0
#include "loadgen/drive_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/alloc_count.h"
#include "loadgen/load_jobs.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "world/sim/cluster.h"

namespace cairn::loadgen {
namespace {

using drive::DriveOp;
using drive::Request;

// Takes a fixed time for each request, except while it stalls; notes what it was asked for.
class SlowDrive final : public drive::Drive {
 public:
  struct Options {
    Duration latency = 100_us;
    Time stalls_from = Time::never();
    Time stalls_until;
    uint64_t fails_at = UINT64_MAX;  // the request of this number
    bool notes = true;
  };
  SlowDrive(env::Env& env, const Options& options) : env_(env), options_(options) {
    geometry_.blocks = 1024;
  }
  const drive::Geometry& geometry() const override { return geometry_; }
  task::Task<void> close() override { return gate_.close(); }

  std::vector<Request> asked;
  uint32_t outstanding = 0;
  uint32_t outstanding_max = 0;
  bool holds_all = false;  // until cancelled

 private:
  void start(DriveOp& op) override { gate_.spawn(serve(op)); }
  // Those that are held end by their token, which serve() waits with.
  void cancel(DriveOp&) override {}

  task::Task<void> serve(DriveOp& op) {
    const uint64_t number = asked.size();
    if (options_.notes) asked.push_back(op.request);
    outstanding_max = std::max(outstanding_max, ++outstanding);
    Time until = env_.now() + options_.latency;
    if (until >= options_.stalls_from) until = std::max(until, options_.stalls_until);
    if (holds_all) until = Time::never();
    const Result<void> slept = co_await task::sleep_until(env_, until, op.token());
    --outstanding;
    Result<void> result;
    if (!slept) result = fail(slept.error());
    if (number == options_.fails_at) result = fail(Errc::kIo, "the medium");
    op.complete(result);
  }

  env::Env& env_;
  Options options_;
  drive::Geometry geometry_;
  task::Gate gate_;
};

using Body = std::function<task::Task<void>(env::Env&)>;

// Runs a program on a node of its own to its end.
void simulate(const Body& body, uint32_t cores = 1) {
  sim::Cluster cluster;
  sim::NodeOptions options;
  options.cores = cores;
  sim::Node& node = cluster.node("host", options);
  node.start(body);
  ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
}

struct Trial {
  DriveLoad load;
  SlowDrive::Options drive;
  Duration cancel_after = Duration::max();
  bool holds_all = false;

  LoadResult result;
  std::vector<Request> asked;
  uint32_t outstanding_max = 0;
  int begun = 0;
  int ended = 0;
  uint64_t allocations = 0;  // in the measured time
};

task::Task<void> cancel_later(env::Env& env, Duration after, task::CancelSource& source) {
  if (after == Duration::max()) co_return;
  const Result<void> slept = co_await task::sleep_for(env, after);
  if (slept) source.request();
}

task::Task<void> try_load(env::Env& env, Trial& trial) {
  SlowDrive::Options options = trial.drive;
  if (options.stalls_until.ns != 0) {  // given from the start
    options.stalls_from = env.now() + (options.stalls_from - Time{});
    options.stalls_until = env.now() + (options.stalls_until - Time{});
  }
  SlowDrive drive(env, options);
  drive.holds_all = trial.holds_all;
  task::CancelSource source;
  task::Task<void> canceller = cancel_later(env, trial.cancel_after, source);
  LoadWatch watch{.begins =
                      [&trial] {
                        ++trial.begun;
                        trial.allocations = bench::allocation_count();
                      },
                  .ended =
                      [&trial] {
                        ++trial.ended;
                        trial.allocations = bench::allocation_count() - trial.allocations;
                      }};
  Result<LoadResult> result = co_await run_load(env, drive, trial.load, source.token(), watch);
  co_await canceller;
  co_await drive.close();
  EXPECT_TRUE(result.has_value()) << result.error().text();
  if (result) trial.result = std::move(*result);
  trial.asked = std::move(drive.asked);
  trial.outstanding_max = drive.outstanding_max;
}

void run(Trial& trial) {
  simulate([&trial](env::Env& env) { return try_load(env, trial); });
}

TEST(DriveLoad, ClosedLoopKeepsItsDepthOutstanding) {
  Trial trial{.load = {.depth = 8, .duration = 100_ms}};
  run(trial);
  EXPECT_EQ(trial.outstanding_max, 8U);
  // 8 requests of 100 us at once.
  EXPECT_NEAR(trial.result.per_second, 80'000, 1000);
  EXPECT_NEAR(trial.result.bytes_per_second(), 80'000 * 4096.0, 1000 * 4096.0);
  EXPECT_EQ(trial.result.writes, 0U);
  EXPECT_EQ(trial.result.read_latency_ns.count(), trial.result.reads);
  EXPECT_NEAR(static_cast<double>(trial.result.read_latency_ns.p50()), 100'000, 2000);
  EXPECT_EQ(trial.result.measured, 100_ms);
}

TEST(DriveLoad, WhatCompletesInTheWarmUpIsNotCounted) {
  Trial trial{.load = {.depth = 1, .warm_up = 50_ms, .duration = 100_ms}};
  run(trial);
  EXPECT_NEAR(static_cast<double>(trial.result.reads), 1000, 2);
  EXPECT_NEAR(static_cast<double>(trial.asked.size()), 1500, 2);
  EXPECT_EQ(trial.begun, 1);
  EXPECT_EQ(trial.ended, 1);
}

TEST(DriveLoad, SequentialOrderGoesRoundItsRange) {
  Trial trial{.load = {.order = DriveLoad::Order::kSequential,
                       .request_size = 8_KiB,
                       .depth = 1,
                       .offset = 64_KiB,
                       .length = 24_KiB,
                       .requests_max = 5}};
  run(trial);
  ASSERT_EQ(trial.asked.size(), 5U);
  const uint64_t expected[] = {16, 18, 20, 16, 18};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(trial.asked[i].lba, Lba(expected[i]));
    EXPECT_EQ(trial.asked[i].blocks, 2U);
  }
}

TEST(DriveLoad, RandomRequestsStayInTheirRangeAndAreMixedByShare) {
  Trial trial{
      .load = {
          .read_share = 0.7, .depth = 4, .offset = 4_KiB, .length = 40_KiB, .requests_max = 2000}};
  run(trial);
  for (const Request& request : trial.asked) {
    EXPECT_GE(request.lba, Lba(1));
    EXPECT_LE(request.lba, Lba(10));
  }
  EXPECT_EQ(trial.result.requests(), 2000U);
  EXPECT_NEAR(static_cast<double>(trial.result.reads), 1400, 100);
}

TEST(DriveLoad, OpenLoopSendsAtItsRate) {
  Trial trial{.load = {.depth = 64, .rate = 5000, .duration = 1_s}};
  run(trial);
  EXPECT_NEAR(trial.result.per_second, 5000, 10);
  EXPECT_EQ(trial.result.unsent, 0U);
  EXPECT_LE(trial.outstanding_max, 2U);
  EXPECT_NEAR(static_cast<double>(trial.result.read_latency_ns.p50()), 100'000, 5000);
}

// The measure of a stall is what everybody waited who came meanwhile.
TEST(DriveLoad, OpenLoopCountsTheWaitOfThoseThatCouldNotBeSent) {
  Trial trial{.load = {.depth = 1, .rate = 1000, .duration = 1_s},
              .drive = {.stalls_from = Time{} + 200_ms, .stalls_until = Time{} + 700_ms}};
  run(trial);
  const Histogram& latency = trial.result.read_latency_ns;
  EXPECT_EQ(latency.count(), 1000U);
  // About half came in the stall and waited a quarter of a second on average.
  EXPECT_GT(latency.percentile(0.75), (200_ms).ns);
  EXPECT_GT(latency.max(), static_cast<uint64_t>((480_ms).ns));
  EXPECT_EQ(trial.result.unsent, 0U);
}

TEST(DriveLoad, OpenLoopThatCannotKeepUpSaysSo) {
  Trial trial{.load = {.depth = 1, .rate = 20'000, .duration = 100_ms}};  // it can do 10,000
  run(trial);
  EXPECT_NEAR(static_cast<double>(trial.result.unsent), 1000, 20);
  EXPECT_NEAR(trial.result.per_second, 10'000, 100);
  EXPECT_EQ(trial.result.read_latency_ns.count(), trial.result.reads + trial.result.unsent);
}

// What a warm-up left behind is done in the measured time and counts as work, not as latency.
TEST(DriveLoad, WorkDoneForAWarmUpStillCountsAsDone) {
  Trial trial{.load = {.depth = 1, .rate = 50'000, .warm_up = 50_ms, .duration = 100_ms}};
  run(trial);
  EXPECT_EQ(trial.result.reads, 0U);
  EXPECT_EQ(trial.result.unsent, 5000U);
  EXPECT_NEAR(static_cast<double>(trial.result.completed), 1000, 10);
  EXPECT_NEAR(trial.result.bytes_per_second(), 10'000 * 4096.0, 100 * 4096.0);
}

TEST(DriveLoad, AFailedRequestEndsItAndIsTold) {
  Trial trial{.load = {.read_share = 0, .depth = 4}, .drive = {.fails_at = 10}};
  run(trial);
  ASSERT_TRUE(trial.result.error.has_value());
  EXPECT_EQ(trial.result.error->code(), Errc::kIo);
  EXPECT_EQ(trial.result.error_lba, trial.asked[10].lba);
  EXPECT_TRUE(trial.result.error_in_write);
  EXPECT_LE(trial.asked.size(), 16U);
}

TEST(DriveLoad, CancellingKeepsWhatWasMeasured) {
  Trial trial{.load = {.depth = 4, .duration = 100_s}, .cancel_after = 50_ms};
  run(trial);
  EXPECT_FALSE(trial.result.error.has_value());
  EXPECT_EQ(trial.result.measured, 50_ms);
  EXPECT_NEAR(trial.result.per_second, 40'000, 200);
  EXPECT_EQ(trial.ended, 1);
}

TEST(DriveLoad, CancellingEndsRequestsThatNobodyAnswers) {
  Trial trial{.load = {.depth = 4}, .cancel_after = 10_ms, .holds_all = true};
  run(trial);
  EXPECT_EQ(trial.result.requests(), 0U);
  EXPECT_FALSE(trial.result.error.has_value());
}

TEST(DriveLoad, NothingIsAllocatedOnceItRuns) {
  for (const double rate : {0.0, 50'000.0}) {
    Trial trial{.load = {.read_share = 0.5, .depth = 32, .rate = rate, .warm_up = 50_ms},
                .drive = {.notes = false}};
    run(trial);
    EXPECT_GT(trial.result.requests(), 1000U);
    if (bench::counts_allocations()) EXPECT_EQ(trial.allocations, 0U);
  }
}

TEST(DriveLoad, WhatADriveCannotDoIsRefused) {
  const drive::Geometry geometry{.blocks = 1024};
  const auto what = [&](const DriveLoad& load) {
    const Result<void> checked = check_load(load, geometry);
    return checked ? std::string() : std::string(checked.error().what());
  };
  EXPECT_EQ(what({}), "");
  EXPECT_NE(what({.request_size = 6000}).find("multiple"), std::string::npos);
  EXPECT_NE(what({.request_size = 2_MiB}).find("larger than the drive takes"), std::string::npos);
  EXPECT_NE(what({.offset = 100}).find("begin"), std::string::npos);
  EXPECT_NE(what({.offset = 4_MiB}).find("beyond"), std::string::npos);
  EXPECT_NE(what({.length = 5_MiB}).find("beyond"), std::string::npos);
  EXPECT_NE(what({.request_size = 64_KiB, .length = 32_KiB}).find("smaller"), std::string::npos);
  EXPECT_NE(what({.depth = 0}).find("depth"), std::string::npos);
  EXPECT_NE(what({.read_share = 1.5}).find("share"), std::string::npos);
}

// --- several jobs --------------------------------------------------------------------------------

struct Party {
  DriveLoad load;
  uint32_t jobs = 1;
  std::vector<Request> asked;
  std::optional<LoadResult> result;
  std::optional<Error> error;
  bool refuses = false;
};

// Keeps a job's drive's requests when it goes.
class NotingDrive final : public drive::Drive {
 public:
  NotingDrive(env::Env& env, Party& party) : inner_(env, {}), party_(party) {}
  const drive::Geometry& geometry() const override { return inner_.geometry(); }
  task::Task<void> close() override {
    party_.asked.insert(party_.asked.end(), inner_.asked.begin(), inner_.asked.end());
    return inner_.close();
  }

 private:
  void start(DriveOp& op) override { gate_.spawn(forward(op)); }
  void cancel(DriveOp&) override {}
  task::Task<void> forward(DriveOp& op) {
    const Result<void> done = co_await inner_.submit(op.request, op.data(), {}, op.token());
    op.complete(done);
  }
  SlowDrive inner_;
  Party& party_;
  task::Gate gate_;
};

task::Task<Result<std::unique_ptr<drive::Drive>>> open_noting(env::Env& there, Party& party) {
  if (party.refuses && there.core() != CoreId(0)) co_return fail(Errc::kUnreachable, "the box");
  co_return std::make_unique<NotingDrive>(there, party);
}

task::Task<void> try_jobs(env::Env& env, Party& party) {
  const LoadJobs jobs{.open = [&party](env::Env& there) { return open_noting(there, party); },
                      .jobs = party.jobs};
  Result<LoadResult> result = co_await run_load_jobs(env, party.load, jobs);
  if (result) {
    party.result = std::move(*result);
  } else {
    party.error = result.error();
  }
}

void run(Party& party) {
  simulate([&party](env::Env& env) { return try_jobs(env, party); }, 2);
}

TEST(LoadJobs, RatesOfJobsAddUp) {
  Party party{.load = {.depth = 2, .duration = 100_ms}, .jobs = 3};
  run(party);
  ASSERT_TRUE(party.result.has_value());
  EXPECT_NEAR(party.result->per_second, 60'000, 600);
  EXPECT_EQ(party.result->measured, 100_ms);
}

TEST(LoadJobs, SequentialJobsShareTheRange) {
  Party party{.load = {.order = DriveLoad::Order::kSequential, .depth = 1, .requests_max = 4},
              .jobs = 4};
  run(party);
  std::vector<uint64_t> places;
  for (const Request& request : party.asked) places.push_back(request.lba.value());
  std::ranges::sort(places);
  const std::vector<uint64_t> expected = {0,   1,   2,   3,   256, 257, 258, 259,
                                          512, 513, 514, 515, 768, 769, 770, 771};
  EXPECT_EQ(places, expected);
}

TEST(LoadJobs, OneThatCannotOpenEndsAll) {
  Party party{.jobs = 2, .refuses = true};
  run(party);
  ASSERT_TRUE(party.error.has_value());
  EXPECT_EQ(party.error->code(), Errc::kUnreachable);
  EXPECT_TRUE(party.asked.empty());
}

}  // namespace
}  // namespace cairn::loadgen
