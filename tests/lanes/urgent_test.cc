// SPDX-License-Identifier: Apache-2.0
// Requests that somebody waits for: they leave at once, with all that waited before them, and can
// have a lane of their own.
#include <functional>

#include "lanes/lane_test.h"
#include "lanes/load.h"
#include "testing/sim_test.h"

namespace cairn::lane_tests {
namespace {

using fabric::HostLane;
using fabric::RingCause;
using Kind = Request::Kind;
using Mode = fabric::DoorbellOptions::Mode;

constexpr Duration kLongDelay = 1_s;

class Urgent : public LaneTest {
 public:
  using Scene = LaneScene<Urgent>;
  Urgent() {
    options.doorbell.mode = Mode::kFixed;
    options.doorbell.count = 64;
    options.doorbell.delay = kLongDelay;
    world.buggify.site = 0;
  }
  void run(Body<Urgent> body) { on_host(*this, body); }

  Request request;  // what is asked of the drive
};

HostLane lane_of(RemoteDrive& drive, size_t queue_id) {
  return drive.paths()[0]->session().lanes()[queue_id];
}

Task<Result<void>> ask(RemoteDrive& drive, const Request& request, std::vector<std::byte>& data) {
  const MutableBytes piece(data);
  const std::span<const MutableBytes> pieces(&piece, request.kind == Kind::kFlush ? 0 : 1);
  const Result<void> done = co_await drive.submit(request, pieces);
  co_return done;
}

// Five reads wait for company; then comes the request, and all six leave together.
Task<void> expect_all_leave_at_once(env::Env& env, Urgent& test) {
  HostPool pool(env);
  const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
  const HostLane before = lane_of(*drive, 1);
  const Time begin = env.now();
  Task<void> waiting = put_load(*drive, {.depth = 5});
  EXPECT_EQ(lane_of(*drive, 1).traffic.out.sends, before.traffic.out.sends);
  std::vector<std::byte> data(kBlock);
  const Result<void> done = co_await ask(*drive, test.request, data);
  EXPECT_OK(done);
  co_await waiting;
  EXPECT_LT(env.now() - begin, 1_ms);
  const HostLane after = lane_of(*drive, 1);
  EXPECT_EQ(after.traffic.out.sends, before.traffic.out.sends + 1);
  EXPECT_EQ(after.traffic.out.messages, before.traffic.out.messages + 6);
  const auto cause = static_cast<size_t>(RingCause::kNoDelay);
  EXPECT_EQ(after.traffic.out.rings[cause], before.traffic.out.rings[cause] + 1);
  co_await drive->close();
}

TEST_F(Urgent, EveryHintTakesAlongAllThatWait) {
  const Request hints[] = {
      {.kind = Kind::kRead, .no_delay = true, .blocks = 1},
      {.kind = Kind::kRead, .metadata = true, .blocks = 1},
      {.kind = Kind::kRead, .priority = drive::Priority::kHigh, .blocks = 1},
      {.kind = Kind::kRead, .priority = drive::Priority::kUrgent, .blocks = 1},
      {.kind = Kind::kWrite, .durable = true, .lba = Lba(100), .blocks = 1},
      {.kind = Kind::kWrite, .metadata = true, .lba = Lba(100), .blocks = 1},
      {.kind = Kind::kWriteZeroes, .durable = true, .lba = Lba(100), .blocks = 1},
      {.kind = Kind::kFlush},
  };
  for (const Request& hint : hints) {
    request = hint;
    run(&expect_all_leave_at_once);
  }
}

SIM_TEST_F(Urgent, WithoutAHintRequestsWait) {
  HostPool pool(env);
  const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
  const Time begin = env.now();
  std::vector<std::byte> data(kBlock);
  for (const drive::Priority priority : {drive::Priority::kNormal, drive::Priority::kLow}) {
    const Request request{.kind = Kind::kRead, .priority = priority, .blocks = 1};
    const Result<void> done = co_await ask(*drive, request, data);
    EXPECT_OK(done);
  }
  EXPECT_GE(env.now() - begin, 2 * kLongDelay);
  co_await drive->close();
}

TEST_F(Urgent, ALaneOfTheirOwnCarriesNothingElse) {
  options.queues = 2;
  options.lanes[1] = {.batching = Mode::kOff, .urgent = true};
  run([](env::Env& env, Urgent& test) -> Task<void> {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    EXPECT_EQ(lane_of(*drive, 1).doorbell.mode, Mode::kOff);
    EXPECT_EQ(lane_of(*drive, 2).doorbell.mode, Mode::kFixed);
    const uint64_t connect = 1;
    co_await put_load(*drive, {.depth = 64, .rounds = 4});
    EXPECT_EQ(lane_of(*drive, 1).traffic.out.messages, connect);
    EXPECT_EQ(lane_of(*drive, 2).traffic.out.messages, connect + 256);
    std::vector<std::byte> data(kBlock);
    for (int i = 0; i < 10; ++i) {
      const Request request{.kind = Kind::kRead, .metadata = true, .blocks = 1};
      const Result<void> done = co_await ask(*drive, request, data);
      EXPECT_OK(done);
    }
    EXPECT_EQ(lane_of(*drive, 1).traffic.out.messages, connect + 10);
    EXPECT_EQ(lane_of(*drive, 2).traffic.out.messages, connect + 256);
    co_await drive->close();
  });
}

// The other lane is full, and so is the line before it; who has a lane of its own passes by.
TEST_F(Urgent, TheyPassAllThatWaitForTheOtherLane) {
  options.queues = 2;
  options.depth = 8;
  options.lanes[2] = {.batching = Mode::kOff, .urgent = true};
  run([](env::Env& env, Urgent& test) -> Task<void> {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    const Time begin = env.now();
    Task<void> crowd = put_load(*drive, {.depth = 100});
    std::vector<std::byte> data(kBlock);
    const Request request{.kind = Kind::kRead, .no_delay = true, .blocks = 1};
    const Result<void> done = co_await ask(*drive, request, data);
    EXPECT_OK(done);
    EXPECT_LT(env.now() - begin, 1_ms) << "it waited for the others' timer";
    co_await crowd;
    EXPECT_GE(env.now() - begin, kLongDelay);
    co_await drive->close();
  });
}

TEST_F(Urgent, MoreOfThemThanTheirLaneHoldsUseTheOthersToo) {
  options.queues = 2;
  options.depth = 4;
  options.lanes[1] = {.urgent = true};
  run([](env::Env& env, Urgent& test) -> Task<void> {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    std::vector<std::vector<std::byte>> data(20, std::vector<std::byte>(kBlock));
    std::vector<Task<Result<void>>> all;
    for (std::vector<std::byte>& each : data) {
      all.push_back(ask(*drive, {.kind = Kind::kRead, .no_delay = true, .blocks = 1}, each));
    }
    for (Task<Result<void>>& each : all) {
      const Result<void> done = co_await each;
      EXPECT_OK(done);
    }
    EXPECT_GT(lane_of(*drive, 1).traffic.out.messages, 4u);
    EXPECT_GT(lane_of(*drive, 2).traffic.out.messages, 4u);
    co_await drive->close();
  });
}

TEST_F(Urgent, LanesThatAreAllKeptCarryEverything) {
  options.queues = 2;
  options.lanes[1] = options.lanes[2] = {.batching = Mode::kAdaptive, .urgent = true};
  run([](env::Env& env, Urgent& test) -> Task<void> {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> drive = co_await open_drive(pool, test.uri());
    co_await put_load(*drive, {.depth = 300, .rounds = 2, .writes = true});
    EXPECT_GT(lane_of(*drive, 1).traffic.out.messages, 200u);
    EXPECT_GT(lane_of(*drive, 2).traffic.out.messages, 200u);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::lane_tests
