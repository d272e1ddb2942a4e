// SPDX-License-Identifier: Apache-2.0
// One modelled SSD under drives of several cores, in the simulator's time.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "drive/modelled_medium.h"
#include "drive/source.h"
#include "env/call.h"
#include "model/flash/workload.h"
#include "task/when_all.h"
#include "testing/drive/modelled.h"
#include "world/sim/cluster.h"

namespace cairn::drive {
namespace {

constexpr uint32_t kCores = 3;

Spec small_flash(std::string_view text) {
  Spec spec = Spec::parse(text).value();
  spec.flash = std::make_shared<const flash::Parameters>(small_ssd());
  return spec;
}

// Writes blocks of its own one after the other, reads each back, and notes how long each took.
struct Worker {
  uint64_t first = 0;
  uint64_t count = 0;
  std::vector<Duration> took;
  bool right = true;
};

task::Task<void> work(env::Env& env, Source& source, Worker& worker) {
  std::unique_ptr<Drive> drive = source.open(env).value();
  for (uint64_t i = 0; i < worker.count; ++i) {
    const Lba lba(worker.first + i);
    const std::vector<std::byte> written(4096, std::byte(lba.value()));
    std::vector<std::byte> back(4096);
    const Time start = env.now();
    Result<void> done = co_await drive->write(lba, written);
    const Time middle = env.now();
    worker.right &= done.has_value();
    done = co_await drive->read(lba, back);
    worker.right &= done.has_value() && back == written;
    worker.took.push_back(middle - start);
    worker.took.push_back(env.now() - middle);
  }
  co_await drive->close();
}

struct Outcome {
  uint64_t completed = 0;
  Histogram lateness;
  bool done = false;
};

task::Task<void> run(env::Env& env, Spec spec, std::vector<Worker>& workers, Outcome& outcome) {
  {
    std::unique_ptr<Source> source = Source::make(env, spec).value();
    std::vector<task::Task<void>> cores;
    for (uint32_t core = 0; core < kCores; ++core) {
      cores.push_back(env::call_on(env, CoreId(core), [&source, &workers](env::Env& there) {
        return work(there, *source, workers[there.core().value()]);
      }));
    }
    co_await task::when_all(std::move(cores));
    outcome.completed = source->modelled()->model().counters().requests_completed;
    outcome.lateness = source->modelled()->lateness();
  }
  outcome.done = true;
}

Outcome simulate(std::string_view text, std::vector<Worker>& workers, Duration message_delay) {
  sim::ClusterOptions options;
  options.message_delay_max = message_delay;
  options.wake_delay_max = Duration{0};
  sim::Cluster cluster(options);
  Outcome outcome;
  cluster.node("box", {.cores = kCores}).start([&](env::Env& env) {
    return run(env, small_flash(text), workers, outcome);
  });
  EXPECT_TRUE(cluster.run_until([&] { return outcome.done; }, 100_s)) << cluster.report();
  return outcome;
}

class ModelledSources : public testing::TestWithParam<const char*> {};

TEST_P(ModelledSources, EveryCoreHasTheDriveToItselfAndOneModelServesAll) {
  std::vector<Worker> workers(kCores);
  for (uint32_t core = 0; core < kCores; ++core) workers[core] = {.first = core * 100, .count = 20};
  const Outcome outcome = simulate(GetParam(), workers, 2_us);
  for (const Worker& worker : workers) {
    EXPECT_TRUE(worker.right);
    EXPECT_EQ(worker.took.size(), 40u);
    // Three cores share two planes: a write of 750 us often waits for another.
    EXPECT_GT(worker.took.front(), 750_us);
  }
  EXPECT_EQ(outcome.completed, kCores * 40u);
  EXPECT_LE(outcome.lateness.max(), 10'000u);
}

INSTANTIATE_TEST_SUITE_P(Media, ModelledSources,
                         testing::Values("flash:profile=small,size=4M",
                                         "flash:profile=small,file=disk,size=4M"),
                         [](const auto& info) { return std::string(info.index ? "file" : "mem"); });

// The model alone, asked the same: each request when the one before it is done.
std::vector<Duration> model_alone(uint64_t first, uint64_t count) {
  class Last final : public flash::CompletionSink {
   public:
    void completed(const flash::Completion& completion) override { done = completion.done; }
    flash::Nanos done = 0;
  };
  flash::FlashModel model(small_ssd());
  Last last;
  std::vector<Duration> took;
  for (uint64_t i = 0; i < count; ++i) {
    for (const flash::Op op : {flash::Op::kWrite, flash::Op::kRead}) {
      const flash::Nanos start = last.done;
      model.submit({.op = op, .lba = (first + i) * 8, .sectors = 8}, start);
      while (last.done == start) model.advance(model.next_event(), last);
      took.emplace_back(last.done - start);
    }
  }
  return took;
}

TEST(ModelledSource, TimesAreExactlyTheModels) {
  for (const uint32_t core : {0u, 2u}) {
    std::vector<Worker> workers(kCores);
    workers[core] = {.first = 7, .count = 30};
    const Outcome outcome = simulate("flash:profile=small,size=4M", workers, Duration{0});
    const std::vector<Duration> expected = model_alone(7, 30);
    ASSERT_EQ(workers[core].took.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(workers[core].took[i].ns, expected[i].ns) << "request " << i << ", core " << core;
    }
    EXPECT_EQ(outcome.lateness.max(), 0u);
  }
}

task::Task<void> refuse_profiles(env::Env& env, bool& done) {
  Spec spec = small_flash("flash:profile=small,size=1G");
  EXPECT_EQ(Source::make(env, spec).error(), Errc::kInvalid);
  spec.flash = nullptr;
  EXPECT_EQ(Source::make(env, spec).error(), Errc::kInvalid);
  done = true;
  co_return;
}

TEST(ModelledSource, ProfileMustBeThereAndLargeEnough) {
  sim::Cluster cluster(sim::ClusterOptions{});
  bool done = false;
  cluster.node("box", {.cores = 1}).start([&](env::Env& env) {
    return refuse_profiles(env, done);
  });
  EXPECT_TRUE(cluster.run_until([&done] { return done; }, 1_s));
}

}  // namespace
}  // namespace cairn::drive
