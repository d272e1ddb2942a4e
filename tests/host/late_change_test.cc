// SPDX-License-Identifier: Apache-2.0
// A change that has ended is never executed later: whoever gave it up may use the blocks for
// something else at once.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "host/drive_fixture.h"
#include "task/deadline.h"

namespace cairn::host_tests {
namespace {

class LateChange : public DriveTest {
 public:
  LateChange() {
    options.keep_alive = 2_s;
    options.cancel_timeout = 500_ms;
    options.quiesce = 1_s;
  }
};

bool changes(const Sqe& sqe) {
  return sqe.io_opcode() == IoOpcode::kWrite || sqe.io_opcode() == IoOpcode::kCompare;
}

// How long a request takes that ends with this error.
Task<Duration> time_to_fail(env::Env& env, RemoteDrive& drive, Request request, Errc expected,
                            Time limit = Time::never()) {
  std::vector<std::byte> data(kBlock);
  std::vector<std::byte> second(kBlock);
  const MutableBytes pieces[] = {MutableBytes(data)};
  const MutableBytes seconds[] = {MutableBytes(second)};
  const bool two = request.kind == Kind::kCompareAndWrite;
  const Time begin = env.now();
  task::Deadline deadline(env, limit);
  const Result<void> done = co_await drive.submit(
      request, pieces, two ? std::span(seconds) : std::span<const MutableBytes>(),
      deadline.token());
  EXPECT_TRUE(!done && done.error() == expected) << (done ? "it succeeded" : done.error().text());
  co_return env.now() - begin;
}

TEST_F(LateChange, OneThatIsCancelledAndNotAnsweredEndsWhenTheTargetHasGivenUpTheConnection) {
  target.options.on_command = for_io([](FakeConnection&, const Sqe& sqe) {
    return changes(sqe) ? Verdict::kIgnore : Verdict::kServe;
  });
  run([](env::Env& env, DriveTest& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Request write{.kind = Kind::kWrite, .lba = Lba(0), .blocks = 1};
    const Duration took =
        co_await time_to_fail(env, *drive, write, Errc::kTimedOut, env.now() + 100_ms);
    EXPECT_GE(took, 100_ms + test.options.cancel_timeout + 2_s + 1_s);
    EXPECT_LT(took, 5_s);
    co_await drive->close();
  });
}

TEST_F(LateChange, OneThatIsCancelledWhileItWaitsToBeSentAgainWaitsOn) {
  target.options.on_command = for_io([](FakeConnection&, const Sqe& sqe) {
    return changes(sqe) ? Verdict::kDrop : Verdict::kServe;
  });
  run([](env::Env& env, DriveTest& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Request write{.kind = Kind::kWrite, .lba = Lba(0), .blocks = 1};
    const Duration took =
        co_await time_to_fail(env, *drive, write, Errc::kTimedOut, env.now() + 100_ms);
    EXPECT_GE(took, 1_s);
    EXPECT_LT(took, 1200_ms);
    // Others do not wait for it.
    std::vector<std::byte> data(kBlock);
    const Result<void> read = co_await drive->read(Lba(0), data);
    EXPECT_OK(read);
    co_await drive->close();
  });
  EXPECT_EQ(target.count(IoOpcode::kWrite), 1u);
}

TEST_F(LateChange, ACompareAndWriteThatWasLostFailsOnlyThen) {
  target.options.on_command = for_io([](FakeConnection&, const Sqe& sqe) {
    return changes(sqe) ? Verdict::kDrop : Verdict::kServe;
  });
  run([](env::Env& env, DriveTest& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Request both{.kind = Kind::kCompareAndWrite, .lba = Lba(0), .blocks = 1};
    const Duration took = co_await time_to_fail(env, *drive, both, Errc::kReset);
    EXPECT_GE(took, 1_s);
    EXPECT_LT(took, 1200_ms);
    co_await drive->close();
  });
}

TEST_F(LateChange, ATargetThatIsGoneForLongerThanItMayBeFailsNoChangeBefore) {
  options.loss_timeout = 100_ms;
  target.options.on_command = for_io([this](FakeConnection&, const Sqe& sqe) {
    if (!changes(sqe)) return Verdict::kServe;
    target.options.on_accept = [] { return false; };
    return Verdict::kDrop;
  });
  run([](env::Env& env, DriveTest& test) -> Task<void> {
    std::unique_ptr<RemoteDrive> drive = co_await open_drive(env, test);
    const Request write{.kind = Kind::kWrite, .lba = Lba(0), .blocks = 1};
    const Duration took = co_await time_to_fail(env, *drive, write, Errc::kUnreachable);
    EXPECT_GE(took, 1_s);
    // What was never sent fails at once.
    const Duration next = co_await time_to_fail(env, *drive, write, Errc::kUnreachable);
    EXPECT_LT(next, 100_ms);
    co_await drive->close();
  });
}

}  // namespace
}  // namespace cairn::host_tests
