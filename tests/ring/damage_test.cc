// SPDX-License-Identifier: Apache-2.0
// Records that rot on the disk of one replica: nobody notices, and they are written anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "kv/chain/client.h"
#include "kv/ring/roster.h"
#include "tests/ring/kv_cluster.h"
#include "world/sim/cluster.h"

namespace cairn::kv {
namespace {

using chain::Client;
using chain::Command;
using task::Task;

sim::ClusterOptions with_blocks() {
  sim::ClusterOptions options;
  options.disk.block_size = 512;
  return options;
}

KvClusterOptions on_disks(size_t nodes) {
  return {
      .nodes = nodes, .nodes_first = 3, .clients = 0, .keys = 0, .on_disk = true, .scans = true};
}

// Three nodes with stores on disks, others that may join, and one user.
class Cluster {
 public:
  explicit Cluster(size_t nodes = 3) : kv_(on_disks(nodes)), cluster_(with_blocks()) {
    kv_.start(cluster_);
    EXPECT_TRUE(cluster_.run_until([this] { return kv_.chain_of("a").size() == 3; }, 30_s));
  }
  std::string put(const std::string& key, std::string value) {
    return write(key, {.kind = Command::Kind::kPut, .value = std::move(value)});
  }
  std::string add(const std::string& key) {
    return write(key, {.kind = Command::Kind::kAdd, .amount = 1});
  }
  // What a client is told that reads so often.
  std::string get(const std::string& key, int times = 1, Duration timeout = 8_s) {
    std::string told;
    play([&, key, times, timeout](env::Env& env) { return read(env, key, times, timeout, told); });
    return told;
  }
  // Damages what has this text, wherever the node has it on its disk. How often that was.
  int rot(size_t number, std::string_view text) {
    sim::Medium& disk = cluster_.node(fmt::format("kv{}", number)).disk("d");
    std::string all(disk.size(), '\0');
    disk.peek(0, std::as_writable_bytes(std::span(all)));
    int found = 0;
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) {
      disk.corrupt({.offset = at, .length = text.size()});
      ++found;
    }
    return found;
  }
  const chain::ReplicaStats& stats(size_t number) const {
    return kv_.node(number)->replica().stats();
  }
  bool run_until(const std::function<bool()>& is_so, Duration time) {
    return cluster_.run_until(is_so, time);
  }
  size_t at(const std::string& key, size_t position) { return kv_.chain_of(key)[position]; }
  // Whether a node has a part in the ring, and of how many ranges it is still being filled, besides
  // those that wait for their turn.
  bool joined(size_t number) const { return share(number).running + share(number).joining > 0; }
  size_t joining(size_t number) const {
    const ring::Share share = this->share(number);
    return share.wanted - share.running;
  }
  void start_all() { kv_.start_all(cluster_); }
  bool settles(Duration time = 60_s) {
    return cluster_.run_until([this] { return kv_.unrest().empty(); }, time);
  }
  // What the nodes tell together in scans from now on, once each has told all twice.
  std::set<std::string> listed(size_t nodes, Duration time = 20_s) {
    std::vector<uint64_t> before;
    for (size_t i = 0; i < nodes; ++i) before.push_back(kv_.scans(i));
    const auto all_did = [&] {
      for (size_t i = 0; i < nodes; ++i) {
        if (kv_.scans(i) < before[i] + 2) return false;
      }
      return true;
    };
    if (!cluster_.run_until(all_did, time)) return {"(not all were listed)"};
    std::set<std::string> all;
    for (size_t i = 0; i < nodes; ++i) all.insert(kv_.listed(i).begin(), kv_.listed(i).end());
    return all;
  }

 private:
  std::string write(const std::string& key, const Command& command) {
    std::string told;
    play([&, key, command](env::Env& env) { return write_once(env, key, command, told); });
    return told;
  }
  ring::Share share(size_t number) const {
    if (kv_.node(number) == nullptr) return {};
    const ring::View* view = kv_.node(number)->replica().view();
    if (view == nullptr) return {};
    return ring::shares(*view)[kv_.node(number)->replica().self()];
  }
  void play(env::Program program) {
    cluster_.node("user").start(std::move(program));
    EXPECT_TRUE(cluster_.run_until([this] { return !cluster_.node("user").is_running(); }, 60_s));
  }
  Task<void> write_once(env::Env& env, std::string key, Command command, std::string& told) {
    Client client(env, {.seeds = kv_.seeds(), .timeout = 8_s, .attempt = 1_s});
    const Result<chain::Outcome> outcome = co_await client.write(key, std::move(command));
    told =
        !outcome ? std::string(name(outcome.error().code())) : fmt::format("{}", outcome->number);
    co_await client.close();
  }
  Task<void> read(env::Env& env, std::string key, int times, Duration timeout, std::string& told) {
    for (int i = 0; i < times; ++i) {
      // Each knows nothing of the nodes, so that all of them are asked.
      Client client(env, {.seeds = kv_.seeds(), .timeout = timeout, .attempt = 1_s});
      Result<chain::Found> found = co_await client.get(key);
      const std::string now =
          !found ? std::string(name(found.error().code())) : found->value.value_or("none");
      told = i == 0 || told == now ? now : fmt::format("{} and {}", told, now);
      co_await client.close();
    }
  }

  KvCluster kv_;
  sim::Cluster cluster_;
};

TEST(RingDamage, ARecordThatRottedIsReadAsItWasAndWrittenAnew) {
  Cluster cluster;
  for (size_t position = 0; position < 3; ++position) {
    SCOPED_TRACE(position);
    const std::string value = fmt::format("a value of its own {}", position);
    EXPECT_EQ(cluster.put("a", value), "0");
    const size_t victim = cluster.at("a", position);
    EXPECT_GE(cluster.rot(victim, value), 1);
    EXPECT_EQ(cluster.get("a", 40), value);
    EXPECT_EQ(cluster.stats(victim).repaired, 1u);
    EXPECT_EQ(cluster.stats(victim).unrepaired, 0u);
    EXPECT_GE(cluster.rot(victim, value), 1) << "it is on the disk again";
    EXPECT_EQ(cluster.get("a", 40), value);
    EXPECT_EQ(cluster.stats(victim).repaired, 2u);
  }
}

TEST(RingDamage, WritesGoOnOverARecordThatRotted) {
  Cluster cluster;
  for (size_t position = 0; position < 3; ++position) {
    SCOPED_TRACE(position);
    const std::string number = fmt::format("7770{}123", position);
    EXPECT_EQ(cluster.put("n", number), "0");
    const size_t victim = cluster.at("n", position);
    EXPECT_GE(cluster.rot(victim, number), 1);
    EXPECT_EQ(cluster.add("n"), fmt::format("7770{}124", position));
    EXPECT_EQ(cluster.get("n", 20), fmt::format("7770{}124", position));
  }
}

TEST(RingDamage, WhatRottedAtAllReplicasIsAnErrorAndNotAnOldValue) {
  Cluster cluster;
  EXPECT_EQ(cluster.put("a", "the old value"), "0");
  EXPECT_EQ(cluster.put("a", "the new value"), "0");
  for (size_t number = 0; number < 3; ++number) EXPECT_GE(cluster.rot(number, "the new value"), 1);
  EXPECT_EQ(cluster.get("a", 1, 2_s), "timed_out");
  EXPECT_EQ(cluster.put("b", "1"), "0");
  EXPECT_EQ(cluster.get("b"), "1");
}

// The replica before the damaged one is gone too, and the last one is left.
TEST(RingDamage, TheTailAloneHasAGoodRecord) {
  Cluster cluster;
  EXPECT_EQ(cluster.put("a", "only at the tail"), "0");
  for (size_t position = 0; position < 2; ++position) {
    EXPECT_GE(cluster.rot(cluster.at("a", position), "only at the tail"), 1);
  }
  EXPECT_EQ(cluster.get("a", 60), "only at the tail");
  for (size_t position = 0; position < 2; ++position) {
    EXPECT_EQ(cluster.stats(cluster.at("a", position)).repaired, 1u);
  }
}

std::string key_of(int n) { return fmt::format("a key of its own {:02}", n); }
std::string value_of(int n) { return fmt::format("a value of its own {:02}", n); }

std::set<std::string> put_many(Cluster& cluster, int count) {
  std::set<std::string> all;
  for (int n = 0; n < count; ++n) {
    EXPECT_EQ(cluster.put(key_of(n), value_of(n)), "0");
    all.insert(key_of(n));
  }
  return all;
}

TEST(RingDamage, AScanTellsAllKeysThoughRecordsRotted) {
  Cluster cluster;
  const std::set<std::string> all = put_many(cluster, 20);
  EXPECT_EQ(cluster.listed(3), all);
  // The value of one, and the key of another, which its own store cannot tell any more: both where
  // they are listed.
  const size_t first = cluster.at(key_of(3), 0);
  EXPECT_GE(cluster.rot(first, value_of(3)), 1);
  EXPECT_EQ(cluster.listed(3), all);
  EXPECT_GE(cluster.stats(first).repaired, 1u);
  const size_t second = cluster.at(key_of(7), 0);
  EXPECT_GE(cluster.rot(second, key_of(7)), 1);
  EXPECT_EQ(cluster.listed(3), all);
  EXPECT_GE(cluster.stats(second).unnamed, 1u);
  EXPECT_EQ(cluster.stats(second).unrepaired, 0u);
  EXPECT_EQ(cluster.get(key_of(7), 20), value_of(7));
}

TEST(RingDamage, ANodeThatJoinsGetsAllKeysThoughRecordsRottedWhereItIsFilledFrom) {
  Cluster cluster(4);
  put_many(cluster, 40);
  for (size_t node = 0; node < 3; ++node) {
    for (int n = static_cast<int>(node); n < 40; n += 6) {
      EXPECT_GE(cluster.rot(node, n % 2 == 0 ? key_of(n) : value_of(n)), 1);
    }
  }
  cluster.start_all();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.joined(3); }, 10_s));
  EXPECT_TRUE(cluster.settles());
  for (int n = 0; n < 40; ++n) EXPECT_EQ(cluster.get(key_of(n), 6), value_of(n));
}

// Nobody can read its value any more: its range waits, and all others go on.
TEST(RingDamage, ARecordThatRottedEverywhereHoldsUpItsRangeAlone) {
  Cluster cluster(4);
  put_many(cluster, 40);
  for (size_t node = 0; node < 3; ++node) EXPECT_GE(cluster.rot(node, value_of(5)), 1);
  cluster.start_all();
  EXPECT_TRUE(cluster.run_until([&] { return cluster.joined(3); }, 10_s));
  EXPECT_TRUE(cluster.run_until([&] { return cluster.joining(3) <= 1; }, 60_s));
  EXPECT_EQ(cluster.get(key_of(5), 1, 2_s), "timed_out");
  for (int n = 0; n < 40; ++n) {
    if (n != 5) EXPECT_EQ(cluster.get(key_of(n), 3), value_of(n));
  }
}

}  // namespace
}  // namespace cairn::kv
