// SPDX-License-Identifier: Apache-2.0
// Stopping: the token of every core is requested, the program cancels what it has in flight, waits
// for it, and returns; then the world is gone. That run() comes back is part of every fact here.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "env/call.h"
#include "env/disk.h"
#include "env/env.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/task.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Connection;
using env::Disk;
using env::Env;
using env::Listener;
using task::CancelSource;
using task::CancelToken;
using task::Gate;
using task::Task;

WORLD_TEST_SUITE(Stopping);

WORLD_TEST(Stopping, ProgramMayEndAtOnce) { co_return; }

WORLD_TEST(Stopping, IsNotRequestedByItself) {
  EXPECT_TRUE(env.stop_token().can_cancel());
  EXPECT_FALSE(env.stop_token().requested());
  co_return;
}

Task<Result<void>> sleep_until_stopped(Env& env) {
  const Result<void> slept = co_await task::sleep_for(env, 10'000_s, env.stop_token());
  co_return slept;
}

WORLD_TEST(Stopping, RequestReachesTheTokenOfEveryCore) {
  std::vector<Task<Result<void>>> sleepers;
  for (uint32_t i = 0; i < env.core_count(); ++i) {
    sleepers.push_back(
        env::call_on(env, CoreId(i), [](Env& there) { return sleep_until_stopped(there); }));
  }
  for (int i = 0; i < 10; ++i) co_await turn(env);
  scene.request_stop();
  for (Task<Result<void>>& sleeper : sleepers) {
    const Result<void> slept = co_await sleeper;
    EXPECT_EQ(outcome(slept), "cancelled");
  }
  EXPECT_TRUE(env.stop_token().requested());
}

WORLD_TEST(Stopping, RequestTwiceIsOnceAndTheProgramGoesOn) {
  scene.request_stop();
  scene.request_stop();
  const Result<void> slept = co_await sleep_until_stopped(env);
  EXPECT_EQ(outcome(slept), "cancelled");
  // It ends when it wants to: streams, timers and messages still work.
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> message = pattern(1000, 1);
  const Result<void> written = co_await pair.a->write(message);
  EXPECT_EQ(outcome(written), "ok");
  must(pair.a->finish());
  const auto arrived = co_await drain(*pair.b);
  EXPECT_EQ(must(arrived), message);
  const int value = co_await env::call_on(env, CoreId(1), [](Env&) { return 5; });
  EXPECT_EQ(value, 5);
}

Task<void> hold_open(Task<Result<void>> task, int& ended) {
  [[maybe_unused]] const Result<void> result = co_await task;
  ++ended;
}
Task<Result<void>> read_for_ever(env::Stream& stream, CancelToken stop) {
  std::vector<std::byte> into(1000);
  const Result<size_t> got = co_await stream.read(into, stop);
  if (!got) co_return fail(got.error());
  co_return Result<void>{};
}
Task<Result<void>> receive_for_ever(env::Stream& stream, CancelToken stop) {
  const Result<env::Chunk> got = co_await stream.receive(stop);
  if (!got) co_return fail(got.error());
  co_return Result<void>{};
}
Task<Result<void>> accept_for_ever(Listener& listener, CancelToken stop) {
  const Result<Connection> got = co_await listener.accept(stop);
  if (!got) co_return fail(got.error());
  co_return Result<void>{};
}
Task<Result<void>> connect_for_ever(Env& env, env::Address to, CancelToken stop) {
  const Result<Connection> got = co_await env.connect(to, stop);
  if (!got) co_return fail(got.error());
  co_return Result<void>{};
}

// Everything a core can wait for, all at once, until its stop token is requested.
Task<int> be_busy(Env& env, Scene& scene, env::Address silent, std::string disk_name) {
  const CancelToken stop = env.stop_token();
  Gate gate;
  int ended = 0;
  const Pair reads = co_await connected(env, scene, kSmallBuffers);
  const Pair receives = co_await connected(env, scene, kSmallBuffers);
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk(disk_name, 1_MiB)));
  const std::vector<std::byte> large = pattern(2 * kInFlightMax, 1);
  const Buffer buffer = blank(env, 256_KiB);
  gate.spawn(hold_open(read_for_ever(*reads.a, stop), ended));
  gate.spawn(hold_open(write_all(*reads.a, large, stop), ended));
  gate.spawn(hold_open(receive_for_ever(*receives.a, stop), ended));
  gate.spawn(hold_open(write_all(*receives.a, large, stop), ended));
  gate.spawn(hold_open(accept_for_ever(*listener, stop), ended));
  gate.spawn(hold_open(connect_for_ever(env, silent, stop), ended));
  gate.spawn(hold_open(doze(env, 10'000_s, stop), ended));
  const Result<void> stopped = co_await sleep_until_stopped(env);
  EXPECT_EQ(outcome(stopped), "cancelled");
  // Started as the world ends, with a token of their own that is requested while they run.
  CancelSource last;
  gate.spawn(hold_open(disk_read(*disk, 0, buffer.bytes(), last.token()), ended));
  gate.spawn(hold_open(disk_flush(*disk, last.token()), ended));
  last.request();
  co_await gate.close();
  co_return ended;
}

WORLD_TEST(Stopping, EverythingInFlightOnEveryCoreEnds) {
  std::vector<Task<int>> busy;
  for (uint32_t i = 0; i < env.core_count(); ++i) {
    const env::Address silent = scene.silent_address();
    busy.push_back(env::call_on(env, CoreId(i), [&scene, silent, i](Env& there) {
      return be_busy(there, scene, silent, "busy_" + std::to_string(i));
    }));
  }
  const Result<void> slept = co_await task::sleep_for(env, 2_ms);
  EXPECT_EQ(outcome(slept), "ok");
  scene.request_stop();
  const std::vector<int> ended = co_await task::when_all(std::move(busy));
  for (const int count : ended) EXPECT_EQ(count, 9);
}

// Connections that were never accepted or opened, listeners, disks and timers that nobody waits
// for: all simply go with the program.
WORLD_TEST(Stopping, ThingsNobodyWaitsForGoWithTheProgram) {
  const std::unique_ptr<Listener> listener = must(env.listen(scene.any_port()));
  const std::unique_ptr<Disk> disk = must(env.open_disk(scene.disk("left", 1_MiB)));
  std::vector<Connection> connections;
  for (int i = 0; i < 10; ++i) {
    Result<Connection> made = co_await env.connect(listener->local());
    connections.push_back(must(std::move(made)));
  }
  Result<Connection> accepted = co_await listener->accept();
  connections.push_back(must(std::move(accepted)));
  const Pair pair = co_await connected(env, scene);
  const std::vector<std::byte> unread = pattern(10'000, 1);
  const Result<void> written = co_await pair.a->write(unread);
  EXPECT_EQ(outcome(written), "ok");
  const Result<env::Chunk> chunk = co_await pair.b->receive();
  EXPECT_EQ(outcome(chunk), "ok");
}

}  // namespace
}  // namespace cairn::conformance
