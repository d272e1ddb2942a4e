// SPDX-License-Identifier: Apache-2.0
// Compare-and-writes of several cores on one medium, in schedules drawn from seeds.
#include "drive/shared_ranges.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "drive/source.h"
#include "env/call.h"
#include "task/task.h"
#include "task/when_all.h"
#include "world/sim/cluster.h"

namespace cairn::drive {
namespace {

constexpr uint32_t kCores = 3;
constexpr uint32_t kBlock = 4096;
constexpr uint64_t kTries = 60;

// What is known from outside; the simulator has one thread.
struct History {
  uint64_t next_value = 1;
  std::set<uint64_t> replaced;  // values that a compare-and-write found and replaced
  uint64_t successes = 0;
  std::string wrong;
};

void set_value(MutableBytes block, uint64_t value) {
  // Every part of the block tells the value, so that a mixture shows.
  for (size_t at = 0; at < block.size(); at += sizeof(value)) store(block.subspan(at), value);
}
uint64_t value_of(Bytes block, History& history) {
  const auto value = load<uint64_t>(block);
  for (size_t at = 0; at < block.size(); at += sizeof(value)) {
    if (load<uint64_t>(block.subspan(at)) != value) history.wrong = "a block of two values";
  }
  return value;
}

// Reads the block and tries to replace what it has seen by a value of its own; or just writes one.
task::Task<void> work(env::Env& env, Drive& drive, History& history) {
  Buffer seen = env.buffers().allocate(kBlock).value();
  Buffer next = env.buffers().allocate(kBlock).value();
  for (uint64_t i = 0; i < kTries; ++i) {
    const Result<void> read = co_await drive.read(Lba(1), seen.bytes());
    EXPECT_TRUE(read.has_value());
    const uint64_t old = value_of(seen.bytes(), history);
    set_value(next.bytes(), history.next_value++);
    if (env.rng().bernoulli(0.2)) {
      const Result<void> written = co_await drive.write(Lba(1), next.bytes());
      EXPECT_TRUE(written.has_value());
      continue;
    }
    const Request request{.kind = Request::Kind::kCompareAndWrite, .lba = Lba(1), .blocks = 1};
    const MutableBytes with = seen.bytes();
    const MutableBytes to = next.bytes();
    const Result<void> done =
        co_await drive.submit(request, std::span(&with, 1), std::span(&to, 1));
    if (!done) {
      EXPECT_EQ(done.error(), Errc::kMismatch);
      continue;
    }
    ++history.successes;
    // Values are never written twice, so each can be replaced once.
    if (!history.replaced.insert(old).second) history.wrong = "a value was replaced twice";
  }
}

task::Task<void> work_on(env::Env& env, Source& source, History& history) {
  std::unique_ptr<Drive> drive = source.open(env).value();
  std::vector<task::Task<void>> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(work(env, *drive, history));
  co_await task::when_all(std::move(workers));
  co_await drive->close();
}

task::Task<void> run(env::Env& env, std::string text, History& history, bool& done) {
  {
    std::unique_ptr<Source> source = Source::make(env, Spec::parse(text).value()).value();
    std::vector<task::Task<void>> cores;
    for (uint32_t core = 0; core < kCores; ++core) {
      cores.push_back(env::call_on(
          env, CoreId(core), [&](env::Env& there) { return work_on(there, *source, history); }));
    }
    co_await task::when_all(std::move(cores));
  }
  done = true;
}

class SharedRangesTest : public testing::TestWithParam<const char*> {};

TEST_P(SharedRangesTest, CompareAndWriteIsAloneOnEveryCore) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    History history;
    bool done = false;
    sim::ClusterOptions options;
    options.seed = seed;
    options.message_delay_max = Duration{static_cast<int64_t>(seed * 20'000)};
    options.wake_delay_max = 5_us;
    sim::Cluster cluster(options);
    cluster.node("box", {.cores = kCores}).start([&](env::Env& env) {
      return run(env, GetParam(), history, done);
    });
    ASSERT_TRUE(cluster.run_until([&] { return done; }, 1000_s)) << cluster.report();
    cluster.run_for(1_ms);
    EXPECT_EQ(history.wrong, "") << "seed " << seed;
    EXPECT_GT(history.successes, 10u) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Media, SharedRangesTest,
                         testing::Values("mem:size=1M", "file:disk,size=1M"),
                         [](const auto& info) { return std::string(info.index ? "file" : "mem"); });

}  // namespace
}  // namespace cairn::drive
