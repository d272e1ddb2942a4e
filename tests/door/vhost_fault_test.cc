// SPDX-License-Identifier: Apache-2.0
// A guest whose server is killed, paused and left at any moment, seed by seed. Every request of the
// guest completes exactly once, whichever server does it; what is read is what was written; after
// healing the guest gets on.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "door/vhost_user/driver.h"
#include "door/vhost_user/server.h"
#include "drive/source.h"
#include "env/sharing.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/when_all.h"
#include "testing/fabric/oracle.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::door_tests {
namespace {

using door::vhost_user::BlkStatus;
using door::vhost_user::BlkType;
using door::vhost_user::Driver;
using door::vhost_user::DriverOptions;
using door::vhost_user::VhostServer;
using door::vhost_user::Waiting;
using fabric_tests::kBlock;
using fabric_tests::Oracle;
using task::Task;

constexpr const char* kServer = "server";
constexpr const char* kDisk = "disk";
constexpr uint64_t kOwnBlocks = 60;  // of a worker
constexpr size_t kWorkers = 6;
constexpr uint64_t kSectors = kBlock / 512;

Task<bool> pause_for(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration, env.stop_token());
  co_return slept.has_value();
}

class VhostWorkload final : public sim::Workload {
 public:
  explicit VhostWorkload(bool is_packed)
      : is_packed_(is_packed), oracle_(kWorkers * kOwnBlocks), done_(kWorkers) {}

  void start(sim::Cluster& cluster) override {
    cluster.node(kServer, {.cores = 2}).start([this](env::Env& env) { return serve(env); });
    cluster.node("guest", {.beside = kServer}).start([this](env::Env& env) { return use(env); });
  }
  uint64_t progress() const override { return std::ranges::min(done_); }
  std::string check(sim::Cluster&) override { return oracle_.wrong(); }

 private:
  static env::Address socket() { return env::Address::parse("unix:/run/vhost").value(); }

  Task<void> serve(env::Env& env) {
    const drive::Spec spec{
        .kind = drive::Spec::Kind::kFile, .path = kDisk, .size = kWorkers * kOwnBlocks * kBlock};
    Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, spec);
    while (!source) {
      const bool goes_on = co_await pause_for(env, 10_ms);
      if (!goes_on) co_return;
      source = drive::Source::make(env, spec);
    }
    constexpr Waiting kModes[] = {Waiting::kInterrupt, Waiting::kAdaptive};
    VhostServer server(env, {.stall_timeout = 2_s, .log = {}});
    const Result<void> served = co_await server.serve({.drive = {.name = "disk",
                                                                 .description = "",
                                                                 .read_only = false,
                                                                 .has_other_writers = false,
                                                                 .source = source->get()},
                                                       .at = socket(),
                                                       .core = CoreId(starts_ % 2),
                                                       .waiting = kModes[starts_ % 2]});
    ++starts_;
    if (served) {
      task::Event never;
      const Result<void> stopped = co_await never.wait(env.stop_token());
      (void)stopped;
    }
    co_await server.drain(env.now() + 1_s);
    co_await server.close();
    co_await (*source)->close(env);
  }

  Task<void> use(env::Env& env) {
    DriverOptions options{.is_packed = is_packed_};
    options.queues = 2;
    Driver driver(env, *env::sharing(env), options);
    if (!driver.prepare()) oracle_.complain("no memory to share");
    std::vector<Task<void>> tasks;
    tasks.push_back(attend(env, driver));
    for (size_t i = 0; i < kWorkers; ++i) tasks.push_back(work(env, driver, i));
    co_await task::when_all(std::move(tasks));
    co_await driver.close();
  }
  // Connects again and again; now and then it goes by itself.
  Task<void> attend(env::Env& env, Driver& driver) {
    while (!env.stop_token().requested()) {
      {
        task::Deadline deadline(env, env.now() + 3_s, env.stop_token());
        const Result<void> connected = co_await driver.connect(socket(), deadline.token());
        if (connected) {
          const bool is_long = env.rng().bernoulli(0.7);
          const Duration stay =
              is_long ? 100_s : Duration{static_cast<int64_t>(env.rng().below(300'000'000))};
          task::Deadline leaving(env, env.now() + stay, env.stop_token());
          co_await driver.until_gone(leaving.token());
        }
        driver.hang_up();
      }
      for (size_t i = 0; i < 2; ++i) {
        if (driver.ring(i).is_broken()) oracle_.complain("a request completed twice");
      }
      const bool goes_on = co_await pause_for(env, 5_ms);
      if (!goes_on) co_return;
    }
  }

  Task<void> work(env::Env& env, Driver& driver, size_t index) {
    bool going = true;
    while (going && !env.stop_token().requested()) {
      going = co_await step(env, driver, index);
      if (going) ++done_[index];
      // Others get their turn, and time passes, also when the drive answers at once.
      if (going) going = co_await pause_for(env, 200_us);
    }
  }
  // False: the guest ends.
  Task<bool> step(env::Env& env, Driver& driver, size_t index) {
    const uint64_t own = index * kOwnBlocks;
    const uint64_t count = 1 + env.rng().below(4);
    const uint64_t lba = own + env.rng().below(kOwnBlocks - count + 1);
    const size_t queue = env.rng().below(2);
    std::vector<std::byte> data(count * kBlock);
    if (env.rng().below(2) == 0) {
      const Oracle::Asked asked = oracle_.begin_read(lba, count);
      const Result<BlkStatus> read =
          co_await driver.read(lba * kSectors, data, env.stop_token(), queue);
      if (read && *read == BlkStatus::kOk) oracle_.end_read(asked, data);
      co_return read.has_value();
    }
    const uint64_t value = oracle_.new_value();
    for (uint64_t i = 0; i < count; ++i) {
      fabric_tests::fill_block(MutableBytes(data).subspan(i * kBlock, kBlock), value, lba + i);
    }
    const Oracle::Asked asked = oracle_.begin_write(lba, count, value);
    const Result<BlkStatus> wrote =
        co_await driver.write(lba * kSectors, data, env.stop_token(), queue);
    if (wrote) oracle_.end_write(asked, *wrote == BlkStatus::kOk, false);
    co_return wrote.has_value();
  }

  const bool is_packed_;
  Oracle oracle_;
  std::vector<uint64_t> done_;  // steps of each worker
  size_t starts_ = 0;
};

// One write, then a guest with nothing to do.
Task<void> write_once(env::Env& env, bool& is_done) {
  Driver driver(env, *env::sharing(env), {.queues = 8});
  EXPECT_TRUE(driver.prepare().has_value());
  Result<void> connected = fail(Errc::kClosed, "not yet");
  while (!connected) {
    connected = co_await driver.connect(env::Address::parse("unix:/run/vhost").value(), {});
    if (!connected) co_await pause_for(env, 1_ms);
  }
  const std::vector<std::byte> data(kBlock);
  const Result<BlkStatus> wrote = co_await driver.write(0, data, {});
  EXPECT_EQ(wrote.value(), BlkStatus::kOk);
  is_done = true;
  co_await driver.until_gone(env.stop_token());
  co_await driver.close();
}

Task<void> serve_memory(env::Env& env, Waiting waiting) {
  const auto source = drive::Source::make(env, *drive::Spec::parse("mem:size=1M")).value();
  VhostServer server(env);
  const Result<void> served =
      co_await server.serve({.drive = {.name = "d", .description = "", .source = source.get()},
                             .at = env::Address::parse("unix:/run/vhost").value(),
                             .core = {},
                             .waiting = waiting});
  EXPECT_TRUE(served.has_value());
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await server.close();
}

// Nothing at all happens while a guest asks for nothing; unless that was asked for.
TEST(VhostIdle, CostsNothing) {
  for (const Waiting waiting : {Waiting::kInterrupt, Waiting::kAdaptive, Waiting::kPolling}) {
    bool is_done = false;
    sim::Cluster cluster;
    cluster.node(kServer).start([&](env::Env& env) { return serve_memory(env, waiting); });
    cluster.node("guest", {.beside = kServer}).start([&](env::Env& env) {
      return write_once(env, is_done);
    });
    ASSERT_TRUE(cluster.run_until([&] { return is_done; }, 10_s));
    EXPECT_EQ(cluster.run_until_idle(10_ms), waiting != Waiting::kPolling);
    cluster.node("guest").stop();
    cluster.node(kServer).stop();
    EXPECT_TRUE(cluster.run_until_idle(1_s));
  }
}

class VhostFaults : public testing::TestWithParam<bool> {};

TEST_P(VhostFaults, NoRequestIsLostOrDoneTwice) {
  using Kind = sim::Fault::Kind;
  const bool is_packed = GetParam();
  sim::Scenario scenario{.name = is_packed ? "vhost_packed" : "vhost_split"};
  scenario.make = [is_packed] { return std::make_unique<VhostWorkload>(is_packed); };
  scenario.faults.nodes = {kServer};
  scenario.faults.disks = {{.node = kServer, .path = kDisk}};
  scenario.faults.kinds = {Kind::kKill,           Kind::kKill,           Kind::kKill,
                           Kind::kKill,           Kind::kPause,          Kind::kDiskStall,
                           Kind::kDiskReadErrors, Kind::kDiskWriteErrors};
  scenario.faults.count_max = 12;
  scenario.fault_phase = 3_s;
  scenario.healed_phase = 60_s;
  scenario.progress_healed = 50;
  scenario.seeds = 20;
  EXPECT_EQ(run_scenario(scenario), "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, VhostFaults, testing::Bool(), [](const auto& layout) {
  return std::string(layout.param ? "Packed" : "Split");
});

}  // namespace
}  // namespace cairn::door_tests
