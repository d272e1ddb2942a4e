// SPDX-License-Identifier: Apache-2.0
// Hosts that stop doing their part: each ends by a deadline, and none keeps others waiting.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "task/deadline.h"
#include "testing/target/suite.h"

namespace cairn::target_tests {
namespace {

SIM_WORLD_TEST_SUITE(Deadlines);

using nvme::SglDescriptor;

// How long the target takes to end the connection.
Task<Duration> time_to_end(env::Env& env, RawHost& host) {
  const Time begin = env.now();
  co_await expect_end(host);
  co_return env.now() - begin;
}

Task<void> expect_served(env::Env& env, RawHost& host, const char* when) {
  const Time begin = env.now();
  const std::vector<std::byte> data = co_await host.read(1, 0, 64);
  EXPECT_EQ(data.size(), 64 * kBlock);
  EXPECT_LT(env.now() - begin, 1_s) << when;
}

WORLD_TEST(Deadlines, WhoNeverConnectsIsDropped) {
  BoxOptions options;
  options.target.handshake_timeout = 5_s;
  Box box(env, options);
  co_await box.open(scene.any_port());
  RawHost silent(env);
  co_await silent.dial(box.address);
  const Duration silence = co_await time_to_end(env, silent);
  EXPECT_GE(silence, 4_s);
  EXPECT_LE(silence, 6_s);
  RawHost greets(env);
  co_await greets.dial(box.address);
  co_await greets.greet();
  const Duration greeting = co_await time_to_end(env, greets);
  EXPECT_LE(greeting, 6_s);
  RawHost slow(env);
  co_await slow.dial(box.address);
  co_await slow.greet();
  const std::vector<std::byte> connect = slow.connect_capsule({});
  const Time begin = env.now();
  for (const std::byte& byte : connect) {  // a byte every 100 ms
    const Result<void> sent = co_await slow.send(Bytes(&byte, 1));
    if (!sent) break;
    const Result<void> slept = co_await task::sleep_for(env, 100_ms);
    EXPECT_TRUE(slept.has_value());
  }
  EXPECT_LE(env.now() - begin, 7_s);
  co_await box.close();
}

// A host that asks for more than a box has buffers for and then does nothing, and two others, one
// of them on its core.
struct Crowd : BoxAndHost {
  Crowd(env::Env& env, const BoxOptions& options)
      : BoxAndHost(env, options), neighbour(env), other(env) {}
  Task<void> open_all(Scene& scene) {
    co_await BoxAndHost::open(scene);
    co_await neighbour.join(box.address, admin, 2);
    co_await other.join(box.address, admin, 3);
  }
  Task<void> send_much(IoOpcode opcode) {
    for (int i = 0; i < 31; ++i) {
      Sqe sqe = queue.io(opcode, 0, 256);
      sqe.sgl1 = SglDescriptor::transport(256 * kBlock);
      co_await queue.deliver(queue.capsule(sqe));
    }
  }
  Task<void> expect_others_served(env::Env& env, int seconds) {
    for (int second = 0; second < seconds; ++second) {
      co_await expect_served(env, neighbour, "next to a host that does nothing");
      co_await expect_served(env, other, "on another core");
      const Result<void> slept = co_await task::sleep_for(env, 1_s);
      EXPECT_TRUE(slept.has_value());
    }
  }
  Task<void> close_all() {
    neighbour.stream.reset();
    other.stream.reset();
    co_await close();
  }
  RawHost neighbour;
  RawHost other;
};

WORLD_TEST(Deadlines, WhoStopsReadingIsDropped) {
  BoxOptions options;
  options.target.write_timeout = 10_s;
  Crowd crowd(env, options);
  co_await crowd.open_all(scene);
  co_await crowd.send_much(IoOpcode::kRead);
  co_await crowd.expect_others_served(env, 15);
  EXPECT_EQ(crowd.box.target().connections(), 3u) << "the dead one is gone";
  co_await crowd.close_all();
}

WORLD_TEST(Deadlines, WhoDoesNotSendItsDataIsDropped) {
  BoxOptions options;
  options.target.data_timeout = 10_s;
  Crowd crowd(env, options);
  co_await crowd.open_all(scene);
  co_await crowd.send_much(IoOpcode::kWrite);
  co_await crowd.expect_others_served(env, 9);
  const Duration rest = co_await time_to_end(env, crowd.queue);
  EXPECT_LE(rest, 2_s);
  co_await crowd.close_all();
}

// The first half of a fused pair waits for its second, and for nothing else.
WORLD_TEST(Deadlines, AFirstHalfWhoseSecondDoesNotComeIsAborted) {
  BoxOptions options;
  options.target.data_timeout = 10_s;
  BoxAndHost pair(env, options);
  co_await pair.open(scene);
  RawHost& host = pair.queue;
  const std::vector<std::byte> zeroes(kBlock);
  const auto half = [&](IoOpcode opcode, nvme::Fuse fuse) {
    Sqe sqe = host.io(opcode, 0, 1);
    sqe.sgl1 = SglDescriptor::in_capsule(kBlock);
    sqe.set_fuse(fuse);
    return sqe;
  };
  for (int round = 0; round < 3; ++round) {
    const Time begin = env.now();
    const nvme::Cqe alone = co_await host.ask(half(IoOpcode::kCompare, nvme::Fuse::kFirst), zeroes);
    EXPECT_EQ(alone.get_status().code(), StatusCode::kAbortedMissingFused) << text_of(alone);
    EXPECT_GE(env.now() - begin, 10_s);
    EXPECT_LT(env.now() - begin, 11_s);
    // One that comes late, but in time. A first half has all of its time, whatever came before.
    for (int i = 0; i < 2; ++i) {
      co_await host.deliver(host.capsule(half(IoOpcode::kCompare, nvme::Fuse::kFirst), zeroes));
      const Result<void> slept = co_await task::sleep_for(env, 9_s);
      must(slept);
      co_await host.deliver(host.capsule(half(IoOpcode::kWrite, nvme::Fuse::kSecond), zeroes));
      const nvme::Cqe first = co_await host.answer();
      EXPECT_TRUE(first.get_status().ok()) << text_of(first);
      const nvme::Cqe second = co_await host.answer();
      EXPECT_TRUE(second.get_status().ok()) << text_of(second);
    }
  }
  co_await pair.close();
}

WORLD_TEST(Deadlines, WhoSendsNoKeepAliveIsDropped) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost silent(env);
  co_await silent.arrive(box.address, {}, {.keep_alive_ms = 2000});
  RawHost queue(env);
  co_await queue.join(box.address, silent, 1);
  RawHost alive(env);
  co_await alive.arrive(box.address, {}, {.keep_alive_ms = 2000, .host_number = 2});
  const Time begin = env.now();
  for (int i = 0; i < 10; ++i) {
    Sqe sqe = Sqe::make(nvme::AdminOpcode::kKeepAlive);
    sqe.cid = alive.next_cid();
    const nvme::Cqe cqe = co_await alive.ask(sqe);
    EXPECT_TRUE(cqe.get_status().ok());
    const Result<void> slept = co_await task::sleep_for(env, 1_s);
    EXPECT_TRUE(slept.has_value());
  }
  co_await expect_end(silent);
  co_await expect_end(queue);
  EXPECT_LE(env.now() - begin, 11_s) << "they had ended long ago";
  alive.stream.reset();
  co_await box.close();
}

// After a TermReq the target waits a moment for the host to close, and no longer.
WORLD_TEST(Deadlines, WhoIgnoresATermReqIsDropped) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost host(env);
  co_await host.arrive(box.address);
  const Result<void> sent = co_await host.send(std::vector<std::byte>(128, std::byte{0xee}));
  EXPECT_TRUE(sent.has_value());
  const Result<void> slept = co_await task::sleep_for(env, 3_s);
  EXPECT_TRUE(slept.has_value());
  EXPECT_EQ(box.target().connections(), 0u);
  co_await expect_term_req(host, FatalError::kInvalidHeader, 0, "nonsense");
  co_await box.close();
}

// Closing the box ends whatever hosts are in the middle of.
WORLD_TEST(Deadlines, ClosingTheBoxWaitsForNoHost) {
  Box box(env);
  co_await box.open(scene.any_port());
  RawHost silent(env);
  co_await silent.dial(box.address);
  RawHost admin(env);
  co_await admin.arrive(box.address);
  RawHost queue(env);
  co_await queue.join(box.address, admin, 1);
  Sqe write = queue.io(IoOpcode::kWrite, 0, 1);
  write.sgl1 = SglDescriptor::transport(kBlock);
  co_await queue.deliver(queue.capsule(write));
  Sqe event = Sqe::make(nvme::AdminOpcode::kAsynchronousEventRequest);
  event.cid = admin.next_cid();
  co_await admin.deliver(admin.capsule(event));
  const Time begin = env.now();
  co_await box.close();
  EXPECT_LT(env.now() - begin, 1_s);
}

}  // namespace
}  // namespace cairn::target_tests
