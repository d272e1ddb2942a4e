// SPDX-License-Identifier: Apache-2.0
// Many cores and many targets: the lanes are as many as there should be, and all of them work.
#include "env/call.h"
#include "lanes/lane_test.h"
#include "lanes/load.h"

namespace cairn::lane_tests {
namespace {

class Many : public LaneTest {
 public:
  Many() {
    box_options.drive = "mem:size=256K,block=512";
    options.depth = 32;
  }
  void run() {
    on_host<Many>(*this, &Many::body);
    for (size_t i = 0; i < box_count; ++i) {
      const fabric::LaneTotals& totals = box(i).io_totals();
      EXPECT_EQ(totals.opened, host_cores) << "box " << i;
      // Each worker of each core, its last look at what it wrote, and a Connect per lane.
      EXPECT_EQ(totals.work.commands, host_cores * (load.depth * (load.rounds + 1) + 1));
      EXPECT_EQ(totals.work.failures, 0u);
    }
  }
  const Load load{.depth = 16, .rounds = 10, .writes = true};

 private:
  static Task<void> use_box(HostPool& pool, Many& test, size_t index) {
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri(index));
    co_await put_load(*drive, test.load);
    const fabric::HostLane lane = drive->paths()[0]->session().lanes()[1];
    EXPECT_EQ(lane.traffic.out.messages, test.load.depth * (test.load.rounds + 1) + 1);
    co_await drive->close();
  }
  // All boxes at once. Cores write the same bytes to the same blocks.
  static Task<void> use_all(env::Env& env, Many& test) {
    HostPool pool(env);
    std::vector<Task<void>> boxes;
    for (size_t i = 0; i < test.box_count; ++i) boxes.push_back(use_box(pool, test, i));
    EXPECT_EQ(pool.entries().size(), test.box_count);
    co_await task::when_all(std::move(boxes));
  }
  static Task<void> body(env::Env& env, Many& test) {
    std::vector<Task<void>> cores;
    for (uint32_t i = 0; i < env.core_count(); ++i) {
      cores.push_back(
          env::call_on(env, CoreId(i), [&test](env::Env& there) { return use_all(there, test); }));
    }
    co_await task::when_all(std::move(cores));
  }
};

TEST_F(Many, EightCoresAndEightBoxes) {
  host_cores = 8;
  box_count = 8;
  box_cores = 2;
  run();
}

TEST_F(Many, OneCoreAnd64Boxes) {
  box_count = 64;
  run();
}

}  // namespace
}  // namespace cairn::lane_tests
