// SPDX-License-Identifier: Apache-2.0
// Commands that are not sent again: because they must not be, or because it is no use.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "host/drive_fixture.h"

namespace cairn::host_tests {
namespace {

class GivingUp : public DriveTest {
 public:
  void run(Body<GivingUp> body) { on_host(*this, body); }
};

// A write that somebody else has ended may be behind a fence; what only reads is tried again.
TEST_F(GivingUp, FencedWritesAreSentOnce) {
  for (const StatusCode code : {StatusCode::kAbortedPreempt, StatusCode::kAbortRequested,
                                StatusCode::kReservationConflict}) {
    const uint64_t writes = target.count(IoOpcode::kWrite);
    target.options.on_command = for_io([code](FakeConnection& connection, const Sqe& sqe) {
      if (sqe.io_opcode() != IoOpcode::kWrite) return Verdict::kServe;
      connection.respond(sqe.cid, code);
      return Verdict::kTaken;
    });
    finished = false;
    run([](env::Env& env, GivingUp& test) -> Task<void> {
      std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
      const std::vector<std::byte> data(kBlock);
      const Result<void> done = co_await drive->write(Lba(0), data);
      EXPECT_FALSE(done.has_value());
      EXPECT_EQ(drive->counters().resent, 0u);
      co_await drive->close();
    });
    EXPECT_EQ(target.count(IoOpcode::kWrite), writes + 1) << nvme::name(code);
  }
}

// Its log says that the path is good, its answers that it is not.
TEST_F(GivingUp, PathErrorsThatTheAnaLogDeniesEndTheRequest) {
  target.options.ana = true;
  uint64_t commands = 0;
  target.options.on_command = for_io([&](FakeConnection& connection, const Sqe& sqe) {
    ++commands;
    connection.respond(sqe.cid, StatusCode::kInternalPathError);
    return Verdict::kTaken;
  });
  run([](env::Env& env, GivingUp& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    std::vector<std::byte> data(kBlock);
    const Time begin = env.now();
    const Result<void> done = co_await drive->read(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kUnreachable);
    EXPECT_GE(env.now() - begin, 5_s) << "long enough for a target to sort itself out";
    EXPECT_LE(env.now() - begin, 30_s);
    const std::array<MutableBytes, 1> pieces = {data};
    const Request pair{.kind = Kind::kCompareAndWrite, .lba = Lba(0), .blocks = 1};
    const Result<void> swapped = co_await drive->submit(pair, std::span(pieces), std::span(pieces));
    EXPECT_TRUE(!swapped && swapped.error() == Errc::kUnreachable);
    co_await drive->close();
  });
  EXPECT_LE(commands, 17u * 3);
}

}  // namespace
}  // namespace cairn::host_tests
