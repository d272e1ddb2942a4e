// SPDX-License-Identifier: Apache-2.0
#include "door/resp/cluster.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "door/resp/command_table.h"
#include "door/resp/door_state.h"
#include "door/resp/view.h"
#include "kv/memory_keyspace.h"
#include "kv/ring/slot.h"
#include "kv/ring/view.h"
#include "testing/sim_test.h"

namespace cairn::door::resp {
namespace {

using kv::ring::Member;
using kv::ring::MemberId;
using kv::ring::Replica;
using State = kv::ring::Replica::State;

// Three members, of which the third has no door; each is the head of a third of the slots.
kv::ring::View make_view() {
  kv::ring::View view{.epoch = kv::ring::Epoch(7), .replicas = 3, .members = {}, .ranges = {}};
  for (uint64_t id = 1; id <= 3; ++id) {
    Member member{.id = MemberId(id), .incarnation = {}, .address = "127.0.0.1:4450"};
    if (id < 3) member.resp = "127.0.0.1:6390";
    view.members.push_back(std::move(member));
  }
  const auto chain = [](const std::vector<std::pair<uint64_t, State>>& replicas) {
    std::vector<Replica> all;
    all.reserve(replicas.size());
    for (const auto& [id, state] : replicas) all.push_back({MemberId(id), state});
    return all;
  };
  view.ranges = {{kv::ring::place_of_slot(99), view.epoch, chain({{1, State::kRunning}})},
                 {kv::ring::place_of_slot(199), view.epoch,
                  chain({{1, State::kLeaving}, {2, State::kRunning}})},
                 {kv::ring::place_of_slot(299), view.epoch, chain({{3, State::kRunning}})}};
  return view;
}

TEST(ClusterSlots, AreThoseOfTheFirstRunningNodeThatClientsCanFind) {
  const std::vector<SlotRun> runs = slot_runs(make_view());
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].first, 0U);
  EXPECT_EQ(runs[0].last, 99U);
  EXPECT_EQ(runs[0].member, MemberId(1));
  EXPECT_EQ(runs[1].first, 100U);
  EXPECT_EQ(runs[1].last, 199U);
  EXPECT_EQ(runs[1].member, MemberId(2));
  // The first range goes on behind the last.
  EXPECT_EQ(runs[2].first, 300U);
  EXPECT_EQ(runs[2].last, kv::ring::kSlots - 1);
  EXPECT_EQ(runs[2].member, MemberId(1));
  EXPECT_EQ(node_name(MemberId(0xabc)), std::string(37, '0') + "abc");
}

std::string refusal_of(const DoorState& door, std::string_view name,
                       std::vector<std::string_view> words) {
  words.insert(words.begin(), name);
  const Command* const command = door.commands.find(name);
  KeySet keys;
  add_keys(*command, words, keys);
  keys.seal();
  return cluster_refusal(door, *command, keys);
}

SIM_TEST(ClusterRefusal, IsOfKeysInSeveralSlotsAndOfCommandsThatNeedSeveralAtOnce) {
  kv::MemoryKeyspace keyspace(env);
  auto view = std::make_shared<const kv::ring::View>(make_view());
  RespOptions options;
  const DoorState alone(env, keyspace, options);
  EXPECT_EQ(refusal_of(alone, "rename", {"a", "b"}), "");
  options.cluster = {.self = MemberId(1), .view = [&view] { return view; }};
  const DoorState door(env, keyspace, options);
  EXPECT_EQ(refusal_of(door, "get", {"a"}), "");
  EXPECT_TRUE(refusal_of(door, "mget", {"a", "b"}).starts_with("CROSSSLOT"));
  EXPECT_EQ(refusal_of(door, "mget", {"{t}a", "{t}b"}), "");
  EXPECT_EQ(refusal_of(door, "mset", {"{t}a", "1", "{t}b", "2"}), "");
  EXPECT_EQ(refusal_of(door, "del", {"{t}a", "{t}b"}), "");
  EXPECT_TRUE(refusal_of(door, "rename", {"{t}a", "{t}b"}).starts_with("ERR 'rename'"));
  EXPECT_EQ(refusal_of(door, "rename", {"a", "a"}), "");
  options.cluster->view = [] { return nullptr; };
  const DoorState early(env, keyspace, options);
  EXPECT_TRUE(refusal_of(early, "get", {"a"}).starts_with("CLUSTERDOWN"));
  EXPECT_EQ(refusal_of(early, "ping", {}), "");
  co_return;
}

}  // namespace
}  // namespace cairn::door::resp
