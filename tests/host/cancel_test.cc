// SPDX-License-Identifier: Apache-2.0
// Commands that are given up before they are answered: their memory is never touched afterwards,
// and what changes the medium does not happen behind the caller's back.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "host/session_fixture.h"
#include "nvme/format/pdu_build.h"
#include "task/deadline.h"
#include "task/sync.h"

namespace cairn::host_tests {
namespace {

using Cancel = SessionTest;

struct Outcome {
  Result<void> result = fail(Errc::kInvalid, "did not end");
  Duration took;
};

// A command with a limit, whose memory is gone as soon as it has returned.
Task<void> with_limit(HostSession& session, IoOpcode opcode, size_t blocks, Duration limit,
                      Outcome& outcome) {
  auto memory = std::make_unique<std::vector<std::byte>>(blocks * FakeMedium::kBlock);
  Sqe sqe = block_command(opcode, 0, static_cast<uint32_t>(blocks));
  const Time begin = session.env().now();
  {
    task::Deadline deadline(session.env(), begin + limit);
    const Result<Cqe> done = co_await session.io(sqe, *memory, deadline.token());
    outcome.result = done ? Result<void>() : fail(done.error());
  }
  outcome.took = session.env().now() - begin;
}

template <class F>
auto io_only(F hook) {
  return [hook](FakeConnection& connection, const Sqe& sqe) {
    return connection.is_admin() || sqe.is_fabrics() ? Verdict::kServe : hook(connection, sqe);
  };
}

// One command that the target answers late or never, then one that it answers.
template <IoOpcode opcode, size_t blocks>
Task<void> late_then_good(env::Env& env, Cancel& test) {
  HostSession session(env, test.session_options(), test);
  const Result<void> opened = co_await session.open({});
  EXPECT_OK(opened);
  Outcome late;
  co_await with_limit(session, opcode, blocks, 100_ms, late);
  EXPECT_TRUE(!late.result && late.result.error() == Errc::kTimedOut);
  EXPECT_LT(late.took, 200_ms);
  const Result<void> slept = co_await task::sleep_for(env, 2_s);
  EXPECT_OK(slept);
  EXPECT_FALSE(session.lost());
  Outcome good;
  co_await with_limit(session, IoOpcode::kRead, 1, 1_s, good);
  EXPECT_OK(good.result);
  co_await session.close();
}

TEST_F(Cancel, ReadComesBackAtOnceAndItsLateDataGoNowhere) {
  uint16_t late = 0;
  FakeConnection* where = nullptr;
  target.options.on_command = io_only([&](FakeConnection& connection, const Sqe& sqe) {
    if (where != nullptr) return Verdict::kServe;
    where = &connection;
    late = sqe.cid;
    return Verdict::kTaken;
  });
  meanwhile = [&] {
    if (where == nullptr || cluster().now() < Time{} + 1_s || late == UINT16_MAX) return;
    const std::vector<std::byte> data(300 * FakeMedium::kBlock, std::byte{1});
    where->send_data(std::exchange(late, UINT16_MAX), data);
  };
  run(late_then_good<IoOpcode::kRead, 300>);
  EXPECT_EQ(late, UINT16_MAX);
}

TEST_F(Cancel, ReadWhoseDataAreComingWaitsForThem) {
  bool begun = false;
  FakeConnection* where = nullptr;
  std::vector<std::byte> rest;
  target.options.on_command = io_only([&](FakeConnection& connection, const Sqe& sqe) {
    if (begun) return Verdict::kServe;
    begun = true;
    where = &connection;
    // Half of a PDU, and the rest much later.
    const std::vector<std::byte> data(300 * FakeMedium::kBlock, std::byte{1});
    std::vector<std::byte> pdu(nvme::kPduPrefixMax);
    pdu.resize(nvme::build_c2h_data(pdu, connection.style(),
                                    {.cid = sqe.cid, .length = 300 * FakeMedium::kBlock},
                                    nvme::C2hEnd::kLast));
    pdu.insert(pdu.end(), data.begin(), data.end());
    connection.send(Bytes(pdu).first(70'000));
    rest.assign(pdu.begin() + 70'000, pdu.end());
    return Verdict::kTaken;
  });
  meanwhile = [&] {
    if (rest.empty() || cluster().now() < Time{} + 500_ms) return;
    where->send(std::exchange(rest, {}));
  };
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    Outcome outcome;
    co_await with_limit(session, IoOpcode::kRead, 300, 100_ms, outcome);
    EXPECT_TRUE(!outcome.result && outcome.result.error() == Errc::kTimedOut);
    EXPECT_GT(outcome.took, 400_ms);
    EXPECT_FALSE(session.lost());
    Outcome good;
    co_await with_limit(session, IoOpcode::kRead, 1, 1_s, good);
    EXPECT_OK(good.result);
    co_await session.close();
  });
}

TEST_F(Cancel, ReadWhoseDataStopComingEndsTheConnection) {
  options.cancel_timeout = 700_ms;
  target.options.on_command = io_only([&](FakeConnection& connection, const Sqe& sqe) {
    std::vector<std::byte> pdu(nvme::kPduPrefixMax);
    pdu.resize(nvme::build_c2h_data(pdu, connection.style(), {.cid = sqe.cid, .length = 8192},
                                    nvme::C2hEnd::kLast));
    pdu.resize(pdu.size() + 1000);
    connection.send(pdu);
    return Verdict::kTaken;
  });
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    Outcome outcome;
    co_await with_limit(session, IoOpcode::kRead, 16, 100_ms, outcome);
    EXPECT_TRUE(!outcome.result && outcome.result.error() == Errc::kTimedOut);
    EXPECT_NEAR(outcome.took.seconds(), 0.8, 0.01);
    EXPECT_TRUE(session.lost().has_value());
    co_await session.close();
  });
}

TEST_F(Cancel, WriteWaitsForItsAnswer) {
  FakeConnection* where = nullptr;
  uint16_t cid = 0;
  target.options.on_command = io_only([&](FakeConnection& connection, const Sqe& sqe) {
    where = &connection;
    cid = sqe.cid;
    return Verdict::kTaken;
  });
  meanwhile = [&] {
    if (where == nullptr || cluster().now() < Time{} + 600_ms) return;
    std::exchange(where, nullptr)->respond(cid, {});
  };
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    Outcome outcome;
    co_await with_limit(session, IoOpcode::kWrite, 4, 100_ms, outcome);
    EXPECT_OK(outcome.result);
    EXPECT_NEAR(outcome.took.seconds(), 0.6, 0.01);
    EXPECT_FALSE(session.lost());
    co_await session.close();
  });
}

TEST_F(Cancel, WriteWithoutAnswerEndsTheConnection) {
  target.options.on_command =
      io_only([&](FakeConnection&, const Sqe&) { return Verdict::kIgnore; });
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    Outcome small;
    co_await with_limit(session, IoOpcode::kWrite, 4, 100_ms, small);
    EXPECT_TRUE(!small.result && small.result.error() == Errc::kTimedOut);
    EXPECT_NEAR(small.took.seconds(), 1.1, 0.01);
    EXPECT_TRUE(session.lost().has_value());
    co_await session.close();
  });
}

TEST_F(Cancel, CommandsThatWaitForASlotComeBackAtOnce) {
  options.depth = 1;
  target.options.on_command =
      io_only([&](FakeConnection&, const Sqe&) { return Verdict::kIgnore; });
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    Outcome first;
    Outcome second;
    Task<void> slow = with_limit(session, IoOpcode::kRead, 4, 400_ms, first);
    Task<void> waiting = with_limit(session, IoOpcode::kWrite, 4, 100_ms, second);
    co_await slow;
    co_await waiting;
    EXPECT_TRUE(!second.result && second.result.error() == Errc::kTimedOut);
    EXPECT_NEAR(second.took.seconds(), 0.1, 0.01);
    EXPECT_NEAR(first.took.seconds(), 0.4, 0.01);
    EXPECT_FALSE(session.lost());
    co_await session.close();
  });
}

// A target that answers a write while its data are still being sent.
TEST_F(Cancel, AnswerBeforeTheDataWereSentDoesNotFreeThem) {
  target.options.on_command = io_only([&](FakeConnection& connection, const Sqe& sqe) {
    connection.send_r2t({.cid = sqe.cid, .ttag = 3, .length = 2048 * FakeMedium::kBlock});
    connection.respond(sqe.cid, {});
    return Verdict::kTaken;
  });
  target.options.h2c_data_max = 8 << 20;
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    Outcome outcome;
    co_await with_limit(session, IoOpcode::kWrite, 2048, 10_s, outcome);
    co_await session.close();
  });
}

TEST_F(Cancel, ManyCancelledAtRandomLeaveASoundQueue) {
  options.depth = 16;
  world.network.faults = {.segment = 0.5};
  target.options.c2h_bytes = 2000;
  target.options.success_flag = false;
  options.cancel_timeout = 30_s;
  run([](env::Env& env, Cancel& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    for (int round = 0; round < 100; ++round) {
      std::vector<Outcome> outcomes(40);
      std::vector<Task<void>> tasks;
      for (Outcome& outcome : outcomes) {
        const IoOpcode opcode = env.rng().bernoulli(0.6) ? IoOpcode::kRead : IoOpcode::kWrite;
        const Duration limit{static_cast<int64_t>(env.rng().below(3'000'000))};
        tasks.push_back(with_limit(session, opcode, 1 + env.rng().below(200), limit, outcome));
      }
      for (Task<void>& task : tasks) co_await task;
      for (const Outcome& outcome : outcomes) {
        EXPECT_TRUE(outcome.result || outcome.result.error() == Errc::kTimedOut)
            << outcome.result.error().text();
      }
    }
    EXPECT_FALSE(session.lost());
    Outcome good;
    co_await with_limit(session, IoOpcode::kRead, 100, 1_s, good);
    EXPECT_OK(good.result);
    co_await session.close();
  });
}

}  // namespace
}  // namespace cairn::host_tests
