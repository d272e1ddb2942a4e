// SPDX-License-Identifier: Apache-2.0
// A target that reads nothing: its requests wait within bounds, and nobody else does.
#include "lanes/lane_test.h"
#include "lanes/load.h"

namespace cairn::lane_tests {
namespace {

using Mode = fabric::DoorbellOptions::Mode;

class BackPressure : public LaneTest {
 public:
  BackPressure() {
    box_count = 2;
    world.network.jitter_max = 0_s;
    world.network.send_buffer_size = world.network.receive_buffer_size = 4096;
    world.buggify.site = 0;
    options.depth = 16;
    box_options.queue_entries = 64;
  }
  void run(Mode mode) {
    options.doorbell.mode = box_options.target.doorbell.mode = mode;
    on_host<BackPressure>(*this, &BackPressure::body);
  }

 private:
  static constexpr size_t kCrowd = 500;

  static Task<Duration> time_of_load(env::Env& env, RemoteDrive& drive) {
    const Time begin = env.now();
    co_await put_load(drive, {.depth = 4, .rounds = 50});
    co_return env.now() - begin;
  }
  static Task<void> body(env::Env& env, BackPressure& test) {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> stuck = co_await open_drive(pool, test.uri(0));
    const std::unique_ptr<RemoteDrive> other = co_await open_drive(pool, test.uri(1));
    const Duration alone = co_await time_of_load(env, *other);

    const uint64_t before = stuck->counters().commands;
    test.cluster().node(test.box_name(0)).pause();
    Task<void> crowd = put_load(*stuck, {.depth = kCrowd, .rounds = 2, .writes = true});
    const Result<void> settled = co_await task::sleep_for(env, 10_ms);
    EXPECT_OK(settled);
    const Duration beside = co_await time_of_load(env, *other);
    EXPECT_EQ(beside.ns, alone.ns) << "another target's lane was held up";
    const fabric::HostLane lane = stuck->lanes()[1];
    EXPECT_EQ(lane.in_flight, test.options.depth);
    EXPECT_EQ(stuck->counters().commands - before, test.options.depth) << "more than has room";
    // What left is what both ends' buffers hold, and the write that waits.
    EXPECT_LE(lane.traffic.out.messages, 1u + test.options.depth);

    test.cluster().node(test.box_name(0)).resume();
    co_await crowd;
    EXPECT_EQ(stuck->counters().resent, 0u);
    co_await stuck->close();
    co_await other->close();
  }
};

TEST_F(BackPressure, HoldsUpNobodyElse) {
  for (const Mode mode : {Mode::kOff, Mode::kFixed, Mode::kAdaptive}) run(mode);
}

}  // namespace
}  // namespace cairn::lane_tests
