// SPDX-License-Identifier: Apache-2.0
// Clients of the NBD door that take places and do nothing with them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "door/door.h"
#include "task/deadline.h"

namespace cairn::door_tests {
namespace {

template <class World>
class NbdStrangers : public Conformance<World> {};
TYPED_TEST_SUITE(NbdStrangers, testing::Types<conformance::Sim>, WorldNames);

Task<void> let_pass(env::Env& env, Duration duration) {
  const Result<void> slept = co_await task::sleep_for(env, duration);
  must(slept);
}

Task<void> expect_served(env::Env& env, env::Address at) {
  NbdClient client(env);
  co_await sure(client.arrive(at, "a", true));
  const Answer answer = co_await sure(client.call({.command = Command::kRead, .length = 4096}));
  EXPECT_EQ(answer.error, 0u);
}

WORLD_TEST(NbdStrangers, SilentConnectionsTakeNoFriendsPlace) {
  door::nbd::NbdOptions options;
  options.connections = {.connections_max = 32, .unproven_max = 8, .reserved = 8};
  size_t refused = 0;
  options.on_refused = [&](const stream::RefusedConnection&) { ++refused; };
  Door door(env, options);
  co_await door.open(scene.any_port());
  std::vector<std::unique_ptr<NbdClient>> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(std::make_unique<NbdClient>(env));
    co_await sure(strangers.back()->dial(door.address));
  }
  co_await let_pass(env, 2_s);
  EXPECT_EQ(door.server().connections(), 8u);
  EXPECT_EQ(refused, 92u);
  co_await expect_served(env, door.address);
  strangers.clear();
  co_await door.close();
}

// When all places are taken, and not before.
WORLD_TEST(NbdStrangers, WhoIsIdleForLongestMakesRoom) {
  door::nbd::NbdOptions options;
  options.connections = {.connections_max = 4, .unproven_max = 4, .reserved = 0};
  options.idle_timeout = 60_s;
  Door door(env, options);
  co_await door.open(scene.any_port());
  std::vector<std::unique_ptr<NbdClient>> idle;
  for (int i = 0; i < 4; ++i) {
    idle.push_back(std::make_unique<NbdClient>(env));
    co_await sure(idle.back()->arrive(door.address, "a", true));
    co_await let_pass(env, 10_s);
  }
  NbdClient early(env);
  const Result<Told> refused = co_await early.arrive(door.address, "a", true);
  EXPECT_FALSE(refused.has_value()) << "nobody was idle for long enough";
  EXPECT_EQ(door.server().connections(), 4u);
  co_await let_pass(env, 1000_s);
  EXPECT_EQ(door.server().connections(), 4u) << "nobody wants to come in";
  co_await sure(idle[0]->call({.command = Command::kRead, .length = 4096}));
  co_await let_pass(env, 1_s);
  const Result<Told> first = co_await early.arrive(door.address, "a", true);
  EXPECT_FALSE(first.has_value()) << "its coming makes room";
  co_await let_pass(env, 2_s);
  EXPECT_EQ(door.server().connections(), 3u);
  co_await expect_served(env, door.address);
  const Answer kept = co_await sure(idle[0]->call({.command = Command::kRead, .length = 4096}));
  EXPECT_EQ(kept.error, 0u) << "it was idle for a second";
  idle.clear();
  co_await door.close();
}

WORLD_TEST(NbdStrangers, WhoIsRefusedIsTold) {
  std::vector<std::string> told;
  door::nbd::NbdOptions options;
  options.negotiation_timeout = 5_s;
  options.on_refused = [&](const stream::RefusedConnection& connection) {
    EXPECT_FALSE(connection.peer.text().empty());
    told.push_back(connection.why);
  };
  Door door(env, options);
  co_await door.open(scene.any_port());
  {
    NbdClient lost(env);
    const Result<Told> nowhere = co_await lost.arrive(door.address, "nowhere", true);
    EXPECT_FALSE(nowhere.has_value());
  }
  co_await let_pass(env, 1_s);
  EXPECT_EQ(told.size(), 1u);
  NbdClient silent(env);
  co_await sure(silent.dial(door.address));
  co_await let_pass(env, 10_s);
  EXPECT_EQ(told.size(), 2u);
  EXPECT_EQ(told.back(), "it took too long to choose an export");
  co_await expect_served(env, door.address);
  co_await let_pass(env, 1_s);
  EXPECT_EQ(told.size(), 2u) << "who was served is not told";
  co_await door.close();
}

}  // namespace
}  // namespace cairn::door_tests
