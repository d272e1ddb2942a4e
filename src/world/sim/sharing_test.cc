// SPDX-License-Identifier: Apache-2.0
// What is particular to sharing in the simulator; what all worlds have in common is in
// tests/conformance.
#include "env/sharing.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/deadline.h"
#include "task/task.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/scenario/fault_plan.h"
#include "world/sim/tear.h"

namespace cairn::sim {
namespace {

using env::Descriptor;
using env::Env;
using env::LocalStream;
using env::Received;
using env::SharedMemory;
using env::Signal;
using task::Task;

constexpr uint64_t kSize = 8192;

env::Address socket() { return env::Address::parse("unix:/run/door").value(); }

// What a guest and a server have of each other; the test looks at it from outside.
struct Stage {
  std::unique_ptr<SharedMemory> memory;  // the guest's
  std::vector<std::string> log;
  int waits = 0;
};

Task<void> until_stopped(Env& env) {
  const Result<void> stopped = co_await task::sleep_until(env, Time::never(), env.stop_token());
  EXPECT_FALSE(stopped.has_value());
}

// Makes memory and a signal, hands them to whoever serves, and keeps the memory.
Task<void> guest(Env& env, Stage& stage) {
  env::Sharing& sharing = *env::sharing(env);
  const Descriptor memory = sharing.make_shared_memory(kSize).value();
  const Descriptor signal = sharing.make_signal().value();
  stage.memory = sharing.map_shared(memory, {.size = kSize}).value();
  const std::unique_ptr<Signal> interrupt = sharing.open_signal(signal).value();
  Result<env::Connection> connection = co_await env.connect(socket(), env.stop_token());
  if (connection) {
    const auto stream = sharing.open_local(std::move(*connection)).value();
    const Descriptor* const sent[] = {&memory, &signal};
    const Result<void> written = co_await stream->write(as_bytes("hello"), sent);
    EXPECT_TRUE(written.has_value());
    while (true) {
      const Result<void> raised = co_await interrupt->wait(env.stop_token());
      if (!raised) break;
      ++stage.waits;
    }
  }
  stage.memory.reset();
}

// Maps what a guest brings, writes there, tells, and waits; when it is cut down, it writes again.
Task<void> server(Env& env, Stage& stage) {
  env::Sharing& sharing = *env::sharing(env);
  const auto listener = env.listen(socket(), {}).value();
  Result<env::Connection> connection = co_await listener->accept(env.stop_token());
  if (!connection) co_return;
  const auto stream = sharing.open_local(std::move(*connection)).value();
  std::array<std::byte, 64> room{};
  std::array<Descriptor, 2> came;
  const Result<Received> got = co_await stream->read(room, came, env.stop_token());
  if (!got || got->descriptors != 2) co_return;
  const auto memory = sharing.map_shared(came[0], {.size = kSize}).value();
  const auto interrupt = sharing.open_signal(came[1]).value();
  memory->bytes()[0] = std::byte{1};
  interrupt->raise();
  const Result<Received> end = co_await stream->read(room, {}, env.stop_token());
  stage.log.push_back(end ? "end" : std::string(name(end.error().code())));
  memory->bytes()[1] = std::byte{2};
  interrupt->raise();
}

class SharingTest : public testing::Test {
 protected:
  void start() {
    cluster_.node("server").start([this](Env& env) { return server(env, stage_); });
    cluster_.run_for(1_us);
    cluster_.node("guest", {.beside = "server"}).start([this](Env& env) {
      return guest(env, stage_);
    });
    EXPECT_TRUE(cluster_.run_until([this] { return stage_.waits == 1; }, 1_s));
  }
  std::byte seen(size_t at) const { return stage_.memory->bytes()[at]; }

  Stage stage_;
  Cluster cluster_;
};

TEST_F(SharingTest, ProcessesBesideEachOtherSeeTheSameMemory) {
  start();
  EXPECT_EQ(seen(0), std::byte{1});
  cluster_.node("guest").stop();
  EXPECT_TRUE(cluster_.run_until_idle(1_s));
  EXPECT_EQ(stage_.log, std::vector<std::string>{"end"});
}

TEST_F(SharingTest, NothingThatAKilledProcessStillDoesIsSeen) {
  start();
  cluster_.node("server").kill();
  cluster_.run_for(1_ms);
  EXPECT_EQ(stage_.log, std::vector<std::string>{"cancelled"});
  EXPECT_EQ(seen(0), std::byte{1});
  EXPECT_EQ(seen(1), std::byte{0});
  EXPECT_EQ(stage_.waits, 1);
  cluster_.node("guest").stop();
  EXPECT_TRUE(cluster_.run_until_idle(1_s));
}

TEST_F(SharingTest, MemoryOutlivesItsMaker) {
  struct Kept {
    std::unique_ptr<SharedMemory> memory;
  } kept;
  Cluster cluster;
  cluster.node("server").start([&kept](Env& env) -> Task<void> {
    return [](Env& here, Kept& keeps) -> Task<void> {
      env::Sharing& sharing = *env::sharing(here);
      const auto listener = here.listen(socket(), {}).value();
      Result<env::Connection> connection = co_await listener->accept(here.stop_token());
      if (!connection) co_return;
      const auto stream = sharing.open_local(std::move(*connection)).value();
      std::array<std::byte, 64> room{};
      std::array<Descriptor, 2> came;
      const Result<Received> got = co_await stream->read(room, came, here.stop_token());
      EXPECT_EQ(got.value().descriptors, 2u);
      keeps.memory = sharing.map_shared(came[0], {.size = kSize}).value();
      co_await until_stopped(here);
      keeps.memory.reset();
    }(env, kept);
  });
  cluster.run_for(1_us);
  cluster.node("guest", {.beside = "server"}).start([this](Env& env) {
    return guest(env, stage_);
  });
  ASSERT_TRUE(cluster.run_until([&] { return kept.memory != nullptr; }, 1_s));
  stage_.memory->bytes()[5] = std::byte{7};
  cluster.node("guest").kill();
  EXPECT_EQ(stage_.memory, nullptr);
  EXPECT_EQ(kept.memory->bytes()[5], std::byte{7});
}

TEST_F(SharingTest, PowerIsLostByAllOfAMachine) {
  start();
  cluster_.node("guest").crash();
  EXPECT_FALSE(cluster_.node("server").is_running());
  EXPECT_TRUE(cluster_.node("server").is_down());
  EXPECT_EQ(stage_.memory, nullptr);
  cluster_.node("server").restart();
  cluster_.run_for(1_us);
  cluster_.node("guest").restart();
  EXPECT_TRUE(cluster_.run_until([this] { return stage_.waits == 2; }, 1_s));
}

TEST_F(SharingTest, AMachineThatCrashedStartsAllOfItsProcesses) {
  start();
  apply_plan(cluster_, {{.kind = Fault::Kind::kCrash, .node = "guest", .duration = 1_ms}});
  cluster_.run_for(500_us);
  EXPECT_TRUE(cluster_.node("server").is_down());
  EXPECT_TRUE(cluster_.node("server").is_beside(cluster_.node("guest")));
  EXPECT_TRUE(cluster_.run_until([this] { return stage_.waits == 2; }, 1_s));
}

TEST_F(SharingTest, NothingPartsAMachineFromItself) {
  start();
  cluster_.partition("server", "guest");
  cluster_.isolate("server");
  cluster_.clog("server", "guest", 1_s);
  cluster_.node("guest").stop();
  EXPECT_TRUE(cluster_.run_until([this] { return stage_.log.size() == 1; }, 1_ms));
}

TEST_F(SharingTest, ARunRepeats) {
  uint64_t hashes[2] = {};
  for (uint64_t& hash : hashes) {
    Stage stage;
    Cluster cluster({.seed = 9});
    cluster.node("server").start([&](Env& env) { return server(env, stage); });
    cluster.run_for(1_us);
    cluster.node("guest", {.beside = "server"}).start([&](Env& env) { return guest(env, stage); });
    cluster.run_for(1_ms);
    cluster.node("server").kill();
    cluster.run_for(1_ms);
    hash = cluster.trace_hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST_F(SharingTest, DisksAreTheMachines) {
  start();
  EXPECT_EQ(&cluster_.node("guest").disk("d"), &cluster_.node("server").disk("d"));
}

TEST_F(SharingTest, TornMemoryReadsAsZeroes) {
  cluster_.node("one").start([](Env& env) -> Task<void> {
    env::Sharing& sharing = *env::sharing(env);
    const Descriptor descriptor = sharing.make_shared_memory(kSize).value();
    const auto whole = sharing.map_shared(descriptor, {.size = kSize}).value();
    const auto front = sharing.map_shared(descriptor, {.size = 4096}).value();
    whole->bytes()[0] = whole->bytes()[4096] = std::byte{9};
    tear_memory(descriptor, 4096);
    EXPECT_FALSE(whole->is_whole());
    EXPECT_TRUE(front->is_whole());
    EXPECT_EQ(whole->bytes()[0], std::byte{9});
    EXPECT_EQ(whole->bytes()[4096], std::byte{0});
    EXPECT_EQ(sharing.map_shared(descriptor, {.size = kSize}).error(), Errc::kInvalid);
    co_return;
  });
  EXPECT_TRUE(cluster_.run_until_idle(1_s));
}

struct Counter final : env::Poller {
  bool poll() override {
    ++polls;
    return false;
  }
  uint64_t polls = 0;
};

Task<void> count_polls(Env& env, Counter& counter) {
  env::sharing(env)->add_poller(counter);
  co_await until_stopped(env);
  env::sharing(env)->remove_poller(counter);
}

TEST_F(SharingTest, PollersAreLookedAtEveryMicrosecond) {
  Counter counter;
  Cluster cluster;
  Node& node = cluster.node("one");
  node.start([&](Env& env) { return count_polls(env, counter); });
  cluster.run_for(1_ms);
  EXPECT_EQ(counter.polls, 1000u);
  node.pause();
  cluster.run_for(1_ms);
  EXPECT_EQ(counter.polls, 1000u);
  node.resume();
  cluster.run_for(1_ms);
  EXPECT_GE(counter.polls, 1999u);
  EXPECT_LE(counter.polls, 2001u);
  const uint64_t before = counter.polls;
  node.stop();
  EXPECT_TRUE(cluster.run_until_idle(1_s));
  EXPECT_EQ(counter.polls, before);
}

TEST_F(SharingTest, ADeadProcessPollsNoMore) {
  Counter counter;
  Cluster cluster;
  Node& node = cluster.node("one");
  node.start([&](Env& env) { return count_polls(env, counter); });
  cluster.run_for(1_ms);
  node.kill();
  EXPECT_EQ(counter.polls, 1000u);
  EXPECT_TRUE(cluster.run_until_idle(1_s));
}

}  // namespace
}  // namespace cairn::sim
