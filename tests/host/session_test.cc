// SPDX-License-Identifier: Apache-2.0
// One association with a target that behaves, and with one that does not.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/host/admin.h"
#include "host/session_fixture.h"
#include "task/deadline.h"
#include "testing/sim_test.h"

namespace cairn::host_tests {
namespace {

using Session = SessionTest;

// Writes and reads back sizes around every limit.
Task<void> round_trips(env::Env& env, Session& test) {
  HostSession session(env, test.session_options(), test);
  const Result<void> opened = co_await session.open({});
  EXPECT_OK(opened);
  if (opened) {
    for (const size_t blocks : {1, 2, 8, 15, 16, 17, 64, 127, 128, 129, 500, 2048}) {
      std::vector<std::byte> data = random_bytes(blocks * FakeMedium::kBlock, blocks);
      const Result<void> written = co_await write_blocks(session, 3, data);
      EXPECT_OK(written);
      std::vector<std::byte> back(data.size());
      const Result<void> read = co_await read_blocks(session, 3, back);
      EXPECT_OK(read);
      EXPECT_EQ(back, data);
    }
  }
  co_await session.close();
}

TEST_F(Session, WritesAndReadsBack) {
  run(round_trips);
  EXPECT_EQ(target.connects, 1u);
  EXPECT_EQ(target.io_connects, 1u);
  EXPECT_EQ(target.shutdowns, 1u);
  EXPECT_GT(target.in_capsule, 5u);
  EXPECT_GT(target.r2ts, 10u);
  EXPECT_FALSE(lost);
  EXPECT_EQ(target.last_connect.host_nqn.get(), "nqn.2026-11.io.cairn:host");
}

TEST_F(Session, WritesAndReadsBackWithDigestsAndPadding) {
  options.header_digest = options.data_digest = true;
  target.options.data_alignment = 31;
  target.options.c2h_bytes = 1000;
  target.options.r2t_bytes = 3000;
  target.options.h2c_data_max = 1024;
  run(round_trips);
  EXPECT_EQ(target.data_errors, 0u);
}

TEST_F(Session, WritesAndReadsBackByteByByte) {
  world.network.faults = {.segment = 1};
  world.network.segment_size_max = 300;
  target.options.success_flag = false;
  target.options.c2h_bytes = 1500;
  options.data_digest = true;
  run(round_trips);
}

TEST_F(Session, WritesAndReadsBackWithoutInCapsuleData) {
  target.options.in_capsule_max = 0;
  target.options.success_flag = false;
  run(round_trips);
  EXPECT_EQ(target.in_capsule, 2u) << "but for Connect's";
}

// Many commands at once on several shallow queues.
Task<void> crowd(env::Env& env, Session& test) {
  HostSession session(env, test.session_options(), test);
  const Result<void> opened = co_await session.open({});
  EXPECT_OK(opened);
  EXPECT_EQ(session.io_queues(), 3u);
  EXPECT_EQ(session.capacity(), 12u);
  std::vector<std::vector<std::byte>> data;
  std::vector<Task<Result<void>>> tasks;
  for (uint64_t i = 0; i < 100; ++i) {
    data.push_back(random_bytes((1 + i % 40) * FakeMedium::kBlock, i));
    tasks.push_back(write_blocks(session, i * 40, data.back()));
  }
  for (auto& task : tasks) {
    const Result<void> written = co_await task;
    EXPECT_OK(written);
  }
  tasks.clear();
  std::vector<std::vector<std::byte>> back;
  for (uint64_t i = 0; i < 100; ++i) {
    back.emplace_back(data[i].size());
    tasks.push_back(read_blocks(session, i * 40, back.back()));
  }
  for (auto& task : tasks) {
    const Result<void> read = co_await task;
    EXPECT_OK(read);
  }
  EXPECT_EQ(back, data);
  co_await session.close();
}

TEST_F(Session, ManyCommandsShareFewSlots) {
  options.queues = 9;
  options.depth = 4;
  target.options.queues_max = 3;
  run(crowd);
}

// --- opening ------------------------------------------------------------------------------------

Task<void> open_and_fail(env::Env& env, Session& test) {
  HostSession session(env, test.session_options(), test);
  const Result<void> opened = co_await session.open({});
  EXPECT_FALSE(opened.has_value());
  if (!opened) test.lost = opened.error();
  co_await session.close();
}

TEST_F(Session, UnknownSubsystemIsNotFoundForGood) {
  target.options.on_command = [](FakeConnection& connection, const Sqe& sqe) {
    const nvme::ConnectInvalid invalid{.offset = 256, .in_data = true};
    connection.respond(sqe.cid, nvme::final_status(StatusCode::kConnectInvalidParameters),
                       invalid.encode());
    return Verdict::kTaken;
  };
  run([](env::Env& env, Session& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_TRUE(!opened && opened.error() == Errc::kNotFound);
    EXPECT_TRUE(session.is_refused());
    co_await session.close();
  });
}

TEST_F(Session, HostThatIsNotOnTheListIsDenied) {
  target.options.on_command = [](FakeConnection& connection, const Sqe& sqe) {
    connection.respond(sqe.cid, nvme::final_status(StatusCode::kConnectInvalidHost));
    return Verdict::kTaken;
  };
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kDenied);
}

SIM_TEST_F(Session, NobodyAtTheAddressIsUnreachable) {
  HostSession::Options wrong = test.session_options();
  wrong.address.port = 1;
  HostSession session(env, wrong, test);
  const Result<void> opened = co_await session.open({});
  EXPECT_TRUE(!opened && opened.error() == Errc::kUnreachable);
  co_await session.close();
}

TEST_F(Session, SilenceAfterIcReqTimesOut) {
  target.options.on_ic_req = [](const nvme::IcReq&) { return std::vector<std::byte>(); };
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kTimedOut);
}

TEST_F(Session, SilenceAfterConnectTimesOut) {
  target.options.on_command = [](FakeConnection&, const Sqe&) { return Verdict::kIgnore; };
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kTimedOut);
}

TEST_F(Session, ControllerThatDoesNotBecomeReadyTimesOut) {
  target.options.never_ready = UINT32_MAX;
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kTimedOut);
}

TEST_F(Session, SlowControllerIsWaitedFor) {
  target.options.never_ready = 20;
  run(round_trips);
}

TEST_F(Session, GarbageInsteadOfIcRespIsRefused) {
  target.options.on_ic_req = [](const nvme::IcReq&) { return random_bytes(500, 3); };
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kInvalid);
}

TEST_F(Session, TargetWithoutDigestsIsNotUsedWhenTheyAreDemanded) {
  options.data_digest = true;
  target.options.on_ic_req = [](const nvme::IcReq&) {
    std::vector<std::byte> response(128);
    nvme::build_ic_resp(response, {.h2c_data_max = 4096});
    return response;
  };
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kUnsupported);
}

TEST_F(Session, AuthenticationIsNotPretended) {
  target.options.on_command = [](FakeConnection& connection, const Sqe& sqe) {
    connection.respond(sqe.cid, {}, nvme::ConnectResult{.authenticate = true}.encode());
    return Verdict::kTaken;
  };
  run(open_and_fail);
  EXPECT_EQ(lost->code(), Errc::kDenied) << "there is no key";
}

TEST_F(Session, ConnectionsThatEndDuringAnyStepOfOpeningFailCleanly) {
  for (int step = 0; step < 12; ++step) {
    int left = step;
    bool dropped = false;
    finished = false;
    lost.reset();
    target.options.on_command = [&](FakeConnection&, const Sqe&) {
      dropped = left-- == 0;
      return dropped ? Verdict::kDrop : Verdict::kServe;
    };
    run([](env::Env& env, Session& test) -> Task<void> {
      HostSession session(env, test.session_options(), test);
      const Result<void> opened = co_await session.open({});
      if (!opened) test.lost = opened.error();
      co_await session.close();
    });
    EXPECT_TRUE(left >= 0 || lost.has_value()) << step;
  }
}

// --- living -------------------------------------------------------------------------------------

Task<void> idle(env::Env& env, Session& test) {
  HostSession session(env, test.session_options(), test);
  const Result<void> opened = co_await session.open({});
  EXPECT_OK(opened);
  for (int i = 0; i < 200 && !test.lost; ++i) {
    const Result<void> slept = co_await task::sleep_for(env, 100_ms);
    EXPECT_OK(slept);
  }
  co_await session.close();
}

TEST_F(Session, KeepsItselfAlive) {
  options.keep_alive = 2_s;
  run(idle);
  EXPECT_FALSE(lost);
  EXPECT_EQ(target.last_command.keep_alive_ms.value(), 0u) << "of the I/O queue";
  EXPECT_NEAR(static_cast<double>(target.count(nvme::AdminOpcode::kKeepAlive)), 20, 2);
}

TEST_F(Session, WithoutKeepAliveNothingIsSent) {
  options.keep_alive = 0_s;
  run(idle);
  EXPECT_EQ(target.count(nvme::AdminOpcode::kKeepAlive), 0u);
}

TEST_F(Session, SilentTargetIsNoticedByKeepAlive) {
  options.keep_alive = 2_s;
  target.options.on_command = [](FakeConnection&, const Sqe& sqe) {
    const bool alive = sqe.admin_opcode() == nvme::AdminOpcode::kKeepAlive && !sqe.is_fabrics();
    return alive ? Verdict::kIgnore : Verdict::kServe;
  };
  run(idle);
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->code(), Errc::kTimedOut);
}

TEST_F(Session, EventsAreToldAndAskedForAgain) {
  int sent = 0;
  meanwhile = [&] {
    if (target.connects == 0 || sent == 3 || events.size() < static_cast<size_t>(sent)) return;
    target.notify(nvme::kNamespacesChanged);
    ++sent;
  };
  run(idle);
  ASSERT_GE(events.size(), 1u);
  EXPECT_EQ(events.front(), nvme::kNamespacesChanged);
}

// --- broken rules -------------------------------------------------------------------------------

// Reads once; the target answers in its own way and the session must end.
Task<void> read_and_lose(env::Env& env, Session& test) {
  HostSession session(env, test.session_options(), test);
  const Result<void> opened = co_await session.open({});
  EXPECT_OK(opened);
  std::vector<std::byte> data(8 * FakeMedium::kBlock);
  const Result<void> read =
      co_await [](HostSession& session, MutableBytes to) -> Task<Result<void>> {
    // Commands come back when the session is closed, which is up to us.
    Task<Result<void>> reading = read_blocks(session, 0, to);
    for (int i = 0; i < 1000 && !session.lost() && !reading.is_done(); ++i) {
      const Result<void> slept = co_await task::sleep_for(session.env(), 100_ms);
      EXPECT_OK(slept);
    }
    co_await session.close();
    co_return co_await reading;
  }(session, data);
  EXPECT_FALSE(read.has_value());
  if (!read) test.lost = read.error();
}

struct Misdeed {
  const char* name;
  std::function<void(FakeConnection&, const Sqe&)> answer;
  Errc expected;
  nvme::FatalError term_error;
};

TEST_F(Session, BrokenRulesEndTheConnectionWithTheRightTermReq) {
  using nvme::C2hEnd;
  using nvme::FatalError;
  const std::vector<std::byte> data(8 * FakeMedium::kBlock);
  const auto c2h = [&](FakeConnection& connection, uint16_t cid, uint32_t offset, uint32_t length,
                       C2hEnd end) {
    connection.send_c2h({.cid = cid, .offset = offset, .length = length}, Bytes(data).first(length),
                        end);
  };
  const Misdeed misdeeds[] = {
      {"response of an unknown command",
       [](FakeConnection& c, const Sqe& sqe) { c.respond(sqe.cid + 1, {}); }, Errc::kInvalid,
       FatalError::kInvalidHeader},
      {"response with another count of the slot",
       [](FakeConnection& c, const Sqe& sqe) { c.respond(sqe.cid + 1024, {}); }, Errc::kInvalid,
       FatalError::kInvalidHeader},
      {"response with an id out of the table",
       [](FakeConnection& c, const Sqe&) { c.respond(0xffff, {}); }, Errc::kInvalid,
       FatalError::kInvalidHeader},
      {"data of an unknown command",
       [&](FakeConnection& c, const Sqe& sqe) { c2h(c, sqe.cid + 3, 0, 512, C2hEnd::kLast); },
       Errc::kInvalid, FatalError::kInvalidHeader},
      {"data not from the start",
       [&](FakeConnection& c, const Sqe& sqe) { c2h(c, sqe.cid, 512, 512, C2hEnd::kMore); },
       Errc::kInvalid, FatalError::kSequence},
      {"data twice",
       [&](FakeConnection& c, const Sqe& sqe) {
         c2h(c, sqe.cid, 0, 512, C2hEnd::kMore);
         c2h(c, sqe.cid, 0, 512, C2hEnd::kMore);
       },
       Errc::kInvalid, FatalError::kSequence},
      {"data after the last",
       [&](FakeConnection& c, const Sqe& sqe) {
         c2h(c, sqe.cid, 0, 512, C2hEnd::kLast);
         c2h(c, sqe.cid, 512, 512, C2hEnd::kLast);
       },
       Errc::kInvalid, FatalError::kSequence},
      {"data past the end",
       [&](FakeConnection& c, const Sqe& sqe) {
         c2h(c, sqe.cid, 0, 4096, C2hEnd::kMore);
         c2h(c, sqe.cid, 4096, 4, C2hEnd::kLast);
       },
       Errc::kInvalid, FatalError::kDataOutOfRange},
      {"R2T of a read",
       [](FakeConnection& c, const Sqe& sqe) { c.send_r2t({.cid = sqe.cid, .length = 512}); },
       Errc::kInvalid, FatalError::kInvalidHeader},
      {"garbage", [](FakeConnection& c, const Sqe&) { c.send(random_bytes(100, 5)); },
       Errc::kInvalid, FatalError::kInvalidHeader},
      {"a second ICResp",
       [](FakeConnection& c, const Sqe&) {
         std::vector<std::byte> response(128);
         nvme::build_ic_resp(response, {.h2c_data_max = 4096});
         c.send(response);
       },
       Errc::kInvalid, FatalError::kSequence},
      {"a TermReq",
       [](FakeConnection& c, const Sqe&) {
         std::vector<std::byte> request(nvme::kTermReqMax);
         const size_t size = nvme::build_term_req(request, nvme::End::kController,
                                                  {FatalError::kDataOutOfRange, 0}, {});
         c.send(Bytes(request).first(size));
       },
       Errc::kReset, FatalError::kNone},
      {"the end of the stream", [](FakeConnection& c, const Sqe&) { c.reset(); }, Errc::kReset,
       FatalError::kNone},
  };
  options.io_timeout = 5_s;
  for (const Misdeed& misdeed : misdeeds) {
    finished = false;
    lost.reset();
    target.term_reqs = target.last_term_error = 0;
    target.options.on_command = [&](FakeConnection& connection, const Sqe& sqe) {
      if (connection.is_admin() || sqe.is_fabrics()) return Verdict::kServe;
      misdeed.answer(connection, sqe);
      return Verdict::kTaken;
    };
    run(read_and_lose);
    ASSERT_TRUE(lost.has_value()) << misdeed.name;
    EXPECT_EQ(lost->code(), misdeed.expected) << misdeed.name << ": " << lost->text();
    EXPECT_EQ(target.last_term_error, static_cast<uint16_t>(misdeed.term_error)) << misdeed.name;
  }
}

TEST_F(Session, HeaderDigestsThatDoNotMatchEndTheConnection) {
  options.header_digest = true;
  target.options.on_command = [&](FakeConnection& connection, const Sqe& sqe) {
    if (connection.is_admin() || sqe.is_fabrics()) return Verdict::kServe;
    target.options.header_flip = 4;
    connection.respond(sqe.cid, {});
    return Verdict::kTaken;
  };
  run(read_and_lose);
  EXPECT_EQ(lost->code(), Errc::kCorrupt);
  EXPECT_EQ(target.last_term_error, static_cast<uint16_t>(nvme::FatalError::kHeaderDigest));
}

TEST_F(Session, DataDigestsThatDoNotMatchFailTheCommandAlone) {
  options.data_digest = true;
  run([](env::Env& env, Session& test) -> Task<void> {
    HostSession session(env, test.session_options(), test);
    const Result<void> opened = co_await session.open({});
    EXPECT_OK(opened);
    std::vector<std::byte> data(8 * FakeMedium::kBlock);
    test.target.options.data_flip = 1;
    const Result<void> wrong = co_await read_blocks(session, 0, data);
    EXPECT_TRUE(!wrong && wrong.error() == Errc::kCorrupt);
    test.target.options.data_flip = 0;
    const Result<void> right = co_await read_blocks(session, 0, data);
    EXPECT_OK(right);
    co_await session.close();
  });
  EXPECT_FALSE(lost);
}

TEST_F(Session, CommandWithoutAnswerEndsTheConnectionInTime) {
  options.io_timeout = 3_s;
  target.options.on_command = [](FakeConnection& connection, const Sqe& sqe) {
    return connection.is_admin() || sqe.is_fabrics() ? Verdict::kServe : Verdict::kIgnore;
  };
  run(read_and_lose);
  EXPECT_EQ(lost->code(), Errc::kTimedOut);
}

}  // namespace
}  // namespace cairn::host_tests
