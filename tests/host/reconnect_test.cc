// SPDX-License-Identifier: Apache-2.0
// Connections that are lost under requests, targets that go away and come back.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "host/drive_fixture.h"
#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::host_tests {
namespace {

using Reconnect = DriveTest;

TEST_F(Reconnect, ReadsAreSentAgainAtOnceAfterTheConnectionWasLost) {
  bool dropped = false;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe&) {
    return std::exchange(dropped, true) ? Verdict::kServe : Verdict::kDrop;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Time begin = env.now();
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    EXPECT_LT(env.now() - begin, 200_ms);
    co_await drive->close();
  });
  EXPECT_EQ(target.connects, 2u);
  EXPECT_EQ(target.count(IoOpcode::kRead), 2u);
}

TEST_F(Reconnect, WritesAreSentAgainAfterTheTargetHadTimeToForgetThem) {
  bool dropped = false;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe&) {
    return std::exchange(dropped, true) ? Verdict::kServe : Verdict::kDrop;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Time begin = env.now();
    const std::vector<std::byte> data = random_bytes(kBlock, 1);
    Result<void> done = co_await drive->write(Lba(0), data);
    EXPECT_OK(done);
    EXPECT_GE(env.now() - begin, test.options.quiesce);
    EXPECT_LT(env.now() - begin, test.options.quiesce + 200_ms);
    EXPECT_TRUE(std::ranges::equal(test.stored(0, 1), data));
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kWrite), 2u);
}

TEST_F(Reconnect, ATargetThatDoesNotTellMayHaveLostWhatWasNotFlushed) {
  int reads = 0;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe& sqe) {
    const bool drops = sqe.io_opcode() == IoOpcode::kRead && reads++ % 2 == 0;
    return drops ? Verdict::kDrop : Verdict::kServe;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data = random_bytes(kBlock, 1);
    Result<void> done = co_await drive->write(Lba(0), data);
    EXPECT_OK(done);
    const drive::Incarnation before = drive->incarnation();
    done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    EXPECT_NE(drive->incarnation(), before);
    done = co_await drive->flush();
    EXPECT_TRUE(!done && done.error() == Errc::kIo);
    done = co_await drive->flush();
    EXPECT_OK(done);
    done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    done = co_await drive->flush();
    EXPECT_OK(done);
    co_await drive->close();
  });
  EXPECT_EQ(target.connects, 3u);
}

TEST_F(Reconnect, OtherWritesNeedNotWaitForThose) {
  bool dropped = false;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe&) {
    return std::exchange(dropped, true) ? Verdict::kServe : Verdict::kDrop;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Time begin = env.now();
    const std::vector<std::byte> data = random_bytes(kBlock, 1);
    Task<Result<void>> lost = write_at(*drive, 0, data);
    Result<void> slept = co_await task::sleep_for(env, 10_ms);
    EXPECT_OK(slept);
    const Result<void> later = co_await drive->write(Lba(1), data);
    EXPECT_OK(later);
    EXPECT_LT(env.now() - begin, 300_ms);
    const Result<void> done = co_await lost;
    EXPECT_OK(done);
    co_await drive->close();
  });
}

TEST_F(Reconnect, NothingThatShowsIsExecutedTwice) {
  int executed = 0;
  target.options.on_command = for_io([&](FakeConnection& connection, const Sqe& sqe) {
    if (sqe.fuse() == nvme::Fuse::kFirst) return Verdict::kServe;
    if (sqe.fuse() != nvme::Fuse::kSecond && sqe.io_opcode() != IoOpcode::kReservationAcquire) {
      return Verdict::kServe;
    }
    ++executed;
    connection.reset();
    return Verdict::kExecute;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> zero(kBlock);
    std::vector<std::byte> next = random_bytes(kBlock, 1);
    const MutableBytes expected = zero;
    const MutableBytes wanted = next;
    const Request request{.kind = Kind::kCompareAndWrite, .lba = Lba(0), .blocks = 1};
    Result<void> done =
        co_await drive->submit(request, std::span(&expected, 1), std::span(&wanted, 1));
    EXPECT_TRUE(!done && done.error() == Errc::kReset);
    std::vector<std::byte> back(kBlock);
    done = co_await drive->read(Lba(0), back);
    EXPECT_OK(done);
    EXPECT_EQ(back, next) << "it had been executed";
    const Sqe sqe = Sqe::make(IoOpcode::kReservationAcquire, 1);
    const Result<nvme::Cqe> answer = co_await drive->execute(sqe, MutableBytes(zero).first(16));
    EXPECT_TRUE(!answer && answer.error() == Errc::kReset);
    co_await drive->close();
  });
  EXPECT_EQ(executed, 2);
}

TEST_F(Reconnect, PairsThatWereNotSentYetAreSentOnce) {
  options.depth = 2;
  bool dropped = false;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe& sqe) {
    const bool is_read = sqe.io_opcode() == IoOpcode::kRead;
    return is_read && !std::exchange(dropped, true) ? Verdict::kDrop : Verdict::kServe;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> back(kBlock);
    Task<Result<void>> reading = read_at(*drive, 5, back);
    std::vector<std::byte> zero(kBlock);
    std::vector<std::byte> next = random_bytes(kBlock, 1);
    const MutableBytes expected = zero;
    const MutableBytes wanted = next;
    const Request request{.kind = Kind::kCompareAndWrite, .lba = Lba(0), .blocks = 1};
    // The read holds one of two slots: the pair waits, and the connection goes meanwhile.
    const Result<void> done =
        co_await drive->submit(request, std::span(&expected, 1), std::span(&wanted, 1));
    EXPECT_OK(done);
    const Result<void> read = co_await reading;
    EXPECT_OK(read);
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kCompare), 1u);
}

// A second path that never works: there are parts for more commands than the first one's queue has
// room for, so that a pair waits in the session itself.
Task<void> pair_behind_a_read(env::Env& env, Reconnect& test, Duration limit,
                              Result<void>& outcome) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  std::vector<std::byte> back(kBlock);
  Task<Result<void>> reading = read_at(*drive, 5, back);
  std::vector<std::byte> zero(kBlock);
  std::vector<std::byte> next = random_bytes(kBlock, 1);
  const MutableBytes expected = zero;
  const MutableBytes wanted = next;
  const Request request{.kind = Kind::kCompareAndWrite, .lba = Lba(0), .blocks = 1};
  {
    task::Deadline deadline(env, env.now() + limit);
    outcome = co_await drive->submit(request, std::span(&expected, 1), std::span(&wanted, 1),
                                     deadline.token());
  }
  const Result<void> read = co_await reading;
  EXPECT_OK(read);
  co_await drive->close();
}

TEST_F(Reconnect, PairsThatWaitInALostSessionAreSentOnce) {
  options.depth = 2;
  has_other = true;
  other.options.on_accept = [] { return false; };
  bool dropped = false;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe& sqe) {
    const bool is_read = sqe.io_opcode() == IoOpcode::kRead;
    return is_read && !std::exchange(dropped, true) ? Verdict::kDrop : Verdict::kServe;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    Result<void> outcome;
    co_await pair_behind_a_read(env, test, 100_s, outcome);
    EXPECT_OK(outcome);
  });
  EXPECT_EQ(target.count(IoOpcode::kCompare), 1u);
}

TEST_F(Reconnect, PairsThatWaitInASessionCanBeCancelled) {
  options.depth = 2;
  options.io_timeout = 3_s;
  has_other = true;
  other.options.on_accept = [] { return false; };
  bool ignored = false;
  target.options.on_command = for_io([&](FakeConnection&, const Sqe& sqe) {
    const bool is_read = sqe.io_opcode() == IoOpcode::kRead;
    return is_read && !std::exchange(ignored, true) ? Verdict::kIgnore : Verdict::kServe;
  });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    Result<void> outcome;
    co_await pair_behind_a_read(env, test, 1_s, outcome);
    EXPECT_TRUE(!outcome && outcome.error() == Errc::kTimedOut);
  });
  EXPECT_EQ(target.count(IoOpcode::kCompare), 0u);
}

TEST_F(Reconnect, RequestsFailWhenTheTargetStaysAwayTooLong) {
  options.loss_timeout = 20_s;
  options.keep_alive = 2_s;
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    test.cluster().node("target").kill();
    const Time begin = env.now();
    std::vector<Task<Result<void>>> many;
    std::vector<std::vector<std::byte>> memory(300, data);
    for (auto& each : memory) many.push_back(read_at(*drive, 0, each));
    for (Task<Result<void>>& each : many) {
      done = co_await each;
      EXPECT_TRUE(!done && done.error() == Errc::kUnreachable);
    }
    EXPECT_NEAR((env.now() - begin).seconds(), 20, 1);
    const Time later = env.now();
    done = co_await drive->read(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kUnreachable);
    EXPECT_EQ(env.now(), later) << "it fails at once now";
    // And it comes back by itself.
    test.cluster().node("target").restart();
    const Result<void> slept = co_await task::sleep_for(env, 20_s);
    EXPECT_OK(slept);
    done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    co_await drive->close();
  });
}

SIM_TEST_F(Reconnect, WaitingRequestsGoOnWhenTheTargetIsBack) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  test.cluster().node("target").kill();
  std::vector<std::byte> data(kBlock);
  Task<Result<void>> reading = read_at(*drive, 0, data);
  const Result<void> slept = co_await task::sleep_for(env, 5_s);
  EXPECT_OK(slept);
  test.cluster().node("target").restart();
  const Result<void> done = co_await reading;
  EXPECT_OK(done);
  EXPECT_GT(drive->counters().waited, 0u);
  co_await drive->close();
}

SIM_TEST_F(Reconnect, CancelledRequestsDoNotWaitForThePath) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  test.cluster().node("target").kill();
  Result<void> slept = co_await task::sleep_for(env, 1_s);
  EXPECT_OK(slept);
  const Time begin = env.now();
  std::vector<std::byte> data(4096 * kBlock);
  task::Deadline deadline(env, env.now() + 300_ms);
  Result<void> done = co_await drive->write(Lba(0), data, deadline.token());
  EXPECT_TRUE(!done && done.error() == Errc::kTimedOut);
  EXPECT_NEAR((env.now() - begin).seconds(), 0.3, 0.01);
  co_await drive->close();
}

TEST_F(Reconnect, SilentTargetIsLeftAndTheRequestSentAgain) {
  options.keep_alive = 2_s;
  int ignored = 0;
  bool silent = true;
  target.options.on_command = [&](FakeConnection& connection, const Sqe& sqe) {
    const bool is_io = !connection.is_admin() && !sqe.is_fabrics();
    if (ignored == 0 && !is_io) return Verdict::kServe;
    if (sqe.is_fabrics()) silent = false;  // a new connection
    if (!silent) return Verdict::kServe;
    ++ignored;
    return Verdict::kIgnore;
  };
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Time begin = env.now();
    const std::vector<std::byte> data = random_bytes(kBlock, 1);
    const Result<void> done = co_await drive->write(Lba(0), data);
    EXPECT_OK(done);
    // Noticed after 1 to 3 s; then the keep-alive time and the quiesce time.
    EXPECT_GT(env.now() - begin, 4_s);
    EXPECT_LT(env.now() - begin, 7_s);
    co_await drive->close();
  });
}

TEST_F(Reconnect, PoisonedCommandsEndSomeTime) {
  target.options.on_command = for_io([](FakeConnection&, const Sqe&) { return Verdict::kDrop; });
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kReset);
    co_await drive->close();
  });
  EXPECT_LT(target.count(IoOpcode::kRead), 20u);
}

TEST_F(Reconnect, PausesGrowAndAreNeverTheSame) {
  options.reconnect_delay_max = 4_s;
  std::vector<Time> attempts;
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    static std::vector<Time>* times;
    static std::vector<Time> storage;
    storage.clear();
    times = &storage;
    test.target.options.on_accept = [&test] {
      times->push_back(test.cluster().now());
      return false;
    };
    test.target.drop_all();
    const Result<void> slept = co_await task::sleep_for(env, 60_s);
    EXPECT_OK(slept);
    EXPECT_GT(times->size(), 15u);
    EXPECT_LT(times->size(), 40u);
    for (size_t i = 7; i < times->size(); ++i) {
      const double pause = ((*times)[i] - (*times)[i - 1]).seconds();
      EXPECT_GE(pause, 1.9);
      EXPECT_LE(pause, 4.1);
    }
    EXPECT_NE(((*times)[9] - (*times)[8]).ns, ((*times)[10] - (*times)[9]).ns);
    co_await drive->close();
  });
}

SIM_TEST_F(Reconnect, ClosesWhileItTriesToConnect) {
  std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
  test.target.options.on_ic_req = [](const nvme::IcReq&) { return std::vector<std::byte>(); };
  test.target.drop_all();
  const Result<void> slept = co_await task::sleep_for(env, 1_s);
  EXPECT_OK(slept);
  const Time begin = env.now();
  co_await drive->close();
  EXPECT_LT(env.now() - begin, 100_ms);
}

TEST_F(Reconnect, FlowControlIsUsedWithTargetsThatNeedIt) {
  target.options.on_command = [](FakeConnection& connection, const Sqe& sqe) {
    if (!sqe.is_fabrics() || sqe.fabrics_type() != nvme::FabricsType::kConnect) {
      return Verdict::kServe;
    }
    const auto command = nvme::fabrics_cast<nvme::ConnectCommand>(sqe);
    if ((command.attributes & nvme::ConnectAttributes::kNoFlowControl) == 0) return Verdict::kServe;
    connection.respond(sqe.cid, nvme::final_status(StatusCode::kConnectInvalidParameters),
                       nvme::ConnectInvalid{.offset = 46}.encode());
    return Verdict::kTaken;
  };
  run([](env::Env& env, Reconnect& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_OK(done);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::host_tests
