// SPDX-License-Identifier: Apache-2.0
// Two ways to one namespace.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "host/drive_fixture.h"
#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::host_tests {
namespace {

using nvme::AnaState;

class Multipath : public DriveTest {
 public:
  using Scene = HostScene<Multipath>;
  Multipath() {
    has_other = true;
    target.options.ana = other.options.ana = true;
  }
  void run(Body<Multipath> body) { on_host(*this, body); }
  uint64_t here() const { return target.count(IoOpcode::kRead); }
  uint64_t there() const { return other.count(IoOpcode::kRead); }
};

// Both paths are connected before the test goes on.
Task<std::unique_ptr<RemoteDrive>> open_both(env::Env& env, Multipath& test) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  const Result<void> slept = co_await task::sleep_for(env, 50_ms);
  EXPECT_OK(slept);
  co_return drive;
}

Task<void> read_some(RemoteDrive& drive, int count) {
  std::vector<std::byte> data(kBlock);
  for (int i = 0; i < count; ++i) {
    const Result<void> done = co_await drive.read(Lba(0), data);
    EXPECT_OK(done);
  }
}

Task<void> pause(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration);
  EXPECT_OK(slept);
}

TEST_F(Multipath, EqualsTakeTurns) {
  run([](env::Env& env, Multipath& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
    co_await read_some(*drive, 100);
    EXPECT_NEAR(static_cast<double>(test.here()), 50, 1);
    EXPECT_NEAR(static_cast<double>(test.there()), 50, 1);
    co_await drive->close();
  });
  EXPECT_EQ(target.last_connect.host_id, other.last_connect.host_id);
}

TEST_F(Multipath, OptimizedPathsComeFirst) {
  target.options.ana_state = AnaState::kNonOptimized;
  run([](env::Env& env, Multipath& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
    co_await read_some(*drive, 20);
    EXPECT_EQ(test.here(), 0u);
    EXPECT_EQ(test.there(), 20u);
    test.other.drop_all();
    test.other.options.on_accept = [] { return false; };
    co_await pause(env, 10_ms);
    co_await read_some(*drive, 20);
    EXPECT_EQ(test.here(), 20u) << "the other one is better than none";
    co_await drive->close();
  });
}

SIM_TEST_F(Multipath, RequestsGoTheOtherWayWhenOneIsLost) {
  std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
  // Neither answers: all are on their way when the first target dies.
  std::vector<std::vector<std::byte>> memory(50, std::vector<std::byte>(kBlock));
  std::vector<Task<Result<void>>> reads;
  for (auto& each : memory) reads.push_back(read_at(*drive, 3, each));
  test.cluster().node("target").kill();
  const Time begin = env.now();
  for (Task<Result<void>>& read : reads) {
    const Result<void> done = co_await read;
    EXPECT_OK(done);
  }
  EXPECT_LT(env.now() - begin, 100_ms);
  co_await read_some(*drive, 20);
  // It comes back into use by itself.
  test.cluster().node("target").restart();
  co_await pause(env, 15_s);
  const uint64_t before = test.here();
  co_await read_some(*drive, 20);
  EXPECT_EQ(test.here() - before, 10u);
  co_await drive->close();
}

SIM_TEST_F(Multipath, OpensWithOneDeadPath) {
  test.cluster().node("target").crash();
  const Time begin = env.now();
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  EXPECT_LT(env.now() - begin, 100_ms) << "the dead one is not waited for";
  co_await read_some(*drive, 5);
  test.cluster().node("target").restart();
  co_await pause(env, 40_s);
  co_await read_some(*drive, 20);
  EXPECT_GT(test.here(), 5u);
  co_await drive->close();
}

TEST_F(Multipath, InaccessibleNamespaceIsReachedTheOtherWay) {
  target.options.on_command = for_io([&](FakeConnection& connection, const Sqe& sqe) {
    if (target.options.ana_state == AnaState::kOptimized) return Verdict::kServe;
    connection.respond(sqe.cid, StatusCode::kAnaInaccessible);
    return Verdict::kTaken;
  });
  run([](env::Env& env, Multipath& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
    test.target.options.ana_state = AnaState::kInaccessible;  // and no event tells
    co_await read_some(*drive, 20);
    const uint64_t refused = test.here();
    EXPECT_LE(refused, 1u);
    co_await pause(env, 3_s);
    co_await read_some(*drive, 20);
    EXPECT_EQ(test.here(), refused);
    test.target.options.ana_state = AnaState::kOptimized;
    co_await pause(env, 2_s);
    co_await read_some(*drive, 20);
    EXPECT_EQ(test.here(), refused + 10) << "the log was looked at again";
    co_await drive->close();
  });
}

SIM_TEST_F(Multipath, EventsMoveRequestsBeforeAnyFails) {
  std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
  test.target.options.ana_state = AnaState::kInaccessible;
  test.target.notify(nvme::kAnaChanged);
  co_await pause(env, 10_ms);
  co_await read_some(*drive, 20);
  EXPECT_EQ(test.here(), 0u);
  test.target.options.ana_state = AnaState::kOptimized;
  test.other.options.ana_state = AnaState::kNonOptimized;
  test.target.notify(nvme::kAnaChanged);
  test.other.notify(nvme::kAnaChanged);
  co_await pause(env, 10_ms);
  co_await read_some(*drive, 20);
  EXPECT_EQ(test.here(), 20u);
  co_await drive->close();
}

TEST_F(Multipath, RequestsWaitThroughATransitionOfAllPaths) {
  target.options.ana_state = other.options.ana_state = AnaState::kChange;
  run([](env::Env& env, Multipath& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
    std::vector<std::byte> data(kBlock);
    Task<Result<void>> reading = read_at(*drive, 0, data);
    co_await pause(env, 5_s);
    EXPECT_FALSE(reading.is_done());
    test.other.options.ana_state = AnaState::kOptimized;
    const Result<void> done = co_await reading;
    EXPECT_OK(done);
    co_await drive->close();
  });
}

TEST_F(Multipath, AnaStatusWithDoNotRetryIsAnError) {
  for (FakeTarget* each : {&target, &other}) {
    each->options.on_command = for_io([](FakeConnection& connection, const Sqe& sqe) {
      connection.respond(sqe.cid, nvme::final_status(StatusCode::kAnaPersistentLoss));
      return Verdict::kTaken;
    });
  }
  run([](env::Env& env, Multipath& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kUnreachable);
    co_await drive->close();
  });
}

SIM_TEST_F(Multipath, AnotherNamespaceOfTheSameNumberIsNoPath) {
  test.other.medium = std::make_shared<FakeMedium>();
  test.other.medium->nguid[0] = 99;
  std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
  co_await pause(env, 5_s);
  // Whoever answered first is the namespace.
  co_await read_some(*drive, 20);
  EXPECT_TRUE(test.here() == 0 || test.there() == 0);
  EXPECT_EQ(test.here() + test.there(), 20u);
  co_await drive->close();
}

TEST_F(Multipath, WritesMoveOverWithTheirOrderIntact) {
  // The first write is executed but not answered, and its connection dies; it must not be sent
  // again so soon that the old one could overtake what follows.
  target.options.on_command = for_io([&](FakeConnection& connection, const Sqe& sqe) {
    if (sqe.io_opcode() != IoOpcode::kWrite) return Verdict::kServe;
    connection.reset();
    return Verdict::kIgnore;
  });
  other.options.ana_state = AnaState::kNonOptimized;
  run([](env::Env& env, Multipath& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_both(env, test);
    const Time begin = env.now();
    const std::vector<std::byte> data = random_bytes(kBlock, 2);
    test.target.options.on_accept = [] { return false; };
    const Result<void> done = co_await drive->write(Lba(0), data);
    EXPECT_OK(done);
    EXPECT_GE(env.now() - begin, test.options.quiesce);
    EXPECT_EQ(test.other.count(IoOpcode::kWrite), 1u);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::host_tests
