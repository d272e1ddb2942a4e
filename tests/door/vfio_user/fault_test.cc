// SPDX-License-Identifier: Apache-2.0
// A server and a guest on one simulated machine; either is killed at any moment, again and again,
// while the guest checks every copy. Whoever is left goes on, and when the killing ends so does the
// work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "base/rng.h"
#include "door/vfio_user/rig.h"
#include "world/sim/cluster.h"

namespace cairn::vfio_user_tests {
namespace {

struct Story {
  uint64_t copies = 0;
  uint64_t arrivals = 0;
  uint64_t wrong = 0;
};

env::Address socket() { return env::Address::parse("unix:/run/vfio").value(); }

Task<void> serve(env::Env& env, Pace pace) {
  Rig rig(env, pace);
  rig.open(socket());
  const Result<void> stopped = co_await task::sleep_until(env, Time::never(), env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await rig.server->drain(env.now() + 1_s);
  co_await rig.close();
}

// Until the copy is done; false: the device is gone.
Task<bool> await_copy(env::Env& env, Client& client, env::Signal& signal) {
  while (!env.stop_token().requested()) {
    task::Deadline soon(env, env.now() + 20_ms, env.stop_token());
    const Result<void> raised = co_await signal.wait(soon.token());
    if (raised) co_return true;
    Le32 ids;
    const Result<void> read =
        co_await client.read(kConfig, 0, mutable_bytes_of(ids), env.stop_token());
    if (!read) co_return false;
  }
  co_return false;
}

// In the middle of a copy that takes as long as it likes, and perhaps longer than we live.
Task<bool> stop_and_go_on(env::Env& env, Guest& guest) {
  const Duration delay{static_cast<int64_t>(env.rng().below(4'000'000))};
  const Result<void> ordered = co_await guest.copy(4096, 8192, 4096, 1, delay);
  if (!ordered) co_return false;
  const Result<void> stopped =
      co_await guest.client->change_state(DeviceState::kStop, env.stop_token());
  if (!stopped) co_return false;
  const Result<void> goes_on =
      co_await guest.client->change_state(DeviceState::kRunning, env.stop_token());
  co_return goes_on.has_value();
}

Task<void> copy_until_the_end(env::Env& env, Guest& guest, Story& story) {
  const Result<std::unique_ptr<env::Signal>> signal =
      co_await guest.client->listen(kMsix, 0, env.stop_token());
  if (!signal) co_return;
  while (!env.stop_token().requested()) {
    const uint64_t from = 4096 + env.rng().below(200'000);
    const uint64_t to = 300'000 + env.rng().below(400'000);
    const auto length = static_cast<uint32_t>(1 + env.rng().below(9000));
    env.rng().fill(guest.at(from, length));
    std::ranges::fill(guest.at(to, length), std::byte{0});
    const Duration delay{static_cast<int64_t>(env.rng().below(300'000))};
    const Result<void> ordered = co_await guest.copy(from, to, length, 0, delay);
    if (!ordered) co_return;
    const bool done = co_await await_copy(env, *guest.client, **signal);
    if (!done) co_return;
    ++story.copies;
    if (!std::ranges::equal(guest.at(from, length), guest.at(to, length))) ++story.wrong;
    // Memory goes and comes back now and then, or the device is stopped while it copies.
    const uint64_t draw = env.rng().below(16);
    if (draw == 0) {
      const bool went_on = co_await stop_and_go_on(env, guest);
      if (!went_on) co_return;
    }
    if (draw > 2) continue;
    const Result<void> unmapped =
        co_await guest.client->unmap(kGuestBase, kGuestSize, env.stop_token());
    if (!unmapped) co_return;
    const Result<void> mapped = co_await guest.client->map(kGuestBase, guest.memory_descriptor,
                                                           {.size = kGuestSize}, env.stop_token());
    if (!mapped) co_return;
  }
}

Task<void> visit(env::Env& env, Story& story) {
  while (!env.stop_token().requested()) {
    Result<Guest> guest = co_await arrive(env, socket());
    if (guest) {
      ++story.arrivals;
      co_await copy_until_the_end(env, *guest, story);
    }
    const Result<void> slept = co_await task::sleep_for(env, 1_ms, env.stop_token());
    if (!slept) co_return;
  }
}

void run_story(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const auto pace = static_cast<Pace>(rng.below(3));
  Story story;
  sim::Cluster cluster({.seed = seed});
  sim::Node& server = cluster.node("server");
  server.start([&](env::Env& env) { return serve(env, pace); });
  cluster.run_for(1_us);
  sim::Node& guest = cluster.node("guest", {.beside = "server"});
  guest.start([&](env::Env& env) { return visit(env, story); });
  for (int i = 0; i < 12; ++i) {
    cluster.run_for({static_cast<int64_t>(rng.below(8'000'000))});
    sim::Node& victim = rng.below(2) == 0 ? server : guest;
    victim.kill();
    cluster.run_for({static_cast<int64_t>(rng.below(2'000'000))});
    victim.restart();
  }
  const uint64_t before = story.copies;
  EXPECT_TRUE(cluster.run_until([&] { return story.copies >= before + 20; }, 10_s));
  EXPECT_EQ(story.wrong, 0u);
  guest.stop();
  server.stop();
  EXPECT_TRUE(cluster.run_until_idle(10_s));
}

// Asks for a stop under a copy that takes a day, beside as many messages as given, and waits.
Task<void> stop_forever(env::Env& env, int others) {
  Result<Guest> guest = co_await arrive(env, socket());
  EXPECT_TRUE(guest.has_value());
  if (!guest) co_return;
  const Result<void> ordered = co_await guest->copy(4096, 8192, 4096, 0, 86400_s);
  EXPECT_TRUE(ordered.has_value());
  const Result<void> slept = co_await task::sleep_for(env, 10_ms);
  EXPECT_TRUE(slept.has_value());
  const Feature request{.argsz = 16u,
                        .flags = kFeatureSet | static_cast<uint32_t>(FeatureId::kMigrationState)};
  const FeatureState state{.state = static_cast<uint32_t>(DeviceState::kStop), .data_fd = {}};
  std::vector<std::byte> bytes = payload_of(
      Header{.command = static_cast<uint16_t>(Command::kFeature), .size = 32u}, request, state);
  for (int i = 0; i < others; ++i) {
    const std::vector<std::byte> reset =
        payload_of(Header{.command = static_cast<uint16_t>(Command::kReset), .size = 16u});
    bytes.insert(bytes.end(), reset.begin(), reset.end());
  }
  const Result<void> sent = co_await guest->client->stream().write(bytes, {}, env.stop_token());
  EXPECT_TRUE(sent.has_value());
  Message answer;
  const Result<void> read =
      co_await read_message(guest->client->stream(), answer, env.stop_token());
  EXPECT_FALSE(read.has_value());
}

Task<void> count_arrival(env::Env& env, Story& story) {
  const Result<Guest> guest = co_await arrive(env, socket());
  if (guest) ++story.arrivals;
}

TEST(VfioUserFaults, AClientKilledWhileItsDeviceIsBeingStoppedLeavesTheDeviceToTheNext) {
  for (const int others : {0, 1, 5}) {
    SCOPED_TRACE(others);
    Story story;
    sim::Cluster cluster;
    sim::Node& server = cluster.node("server");
    server.start([&](env::Env& env) { return serve(env, Pace::kAdaptive); });
    cluster.run_for(1_us);
    sim::Node& guest = cluster.node("guest", {.beside = "server"});
    guest.start([&](env::Env& env) { return stop_forever(env, others); });
    cluster.run_for(1_s);
    guest.kill();
    cluster.run_for(1_ms);
    sim::Node& next = cluster.node("next", {.beside = "server"});
    next.start([&](env::Env& env) { return count_arrival(env, story); });
    cluster.run_for(10_ms);
    EXPECT_EQ(story.arrivals, 1u);
    server.stop();
    EXPECT_TRUE(cluster.run_until_idle(10_s));
  }
}

TEST(VfioUserFaults, WhoeverIsKilledTheOtherGoesOn) {
  for (uint64_t seed = 1; seed <= 60; ++seed) run_story(seed);
}

}  // namespace
}  // namespace cairn::vfio_user_tests
