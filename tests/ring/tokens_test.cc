// SPDX-License-Identifier: Apache-2.0
// What nodes say of their free tokens, and what clients make of it: replicas that are slow are
// asked less, tenants have their parts, and nothing waits for ever.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kv/chain/client.h"
#include "task/when_all.h"
#include "tests/ring/kv_cluster.h"
#include "world/sim/cluster.h"

namespace cairn::kv {
namespace {

using chain::Client;
using chain::ClientOptions;
using chain::Command;
using task::Task;

// Reads a key, one after the other, until the time is over.
Task<void> read_until(env::Env& env, Client& client, Time end, uint64_t& reads) {
  while (env.now() < end && !env.stop_token().requested()) {
    const Result<chain::Found> found = co_await client.get("a", env.stop_token());
    EXPECT_TRUE(found.has_value() || env.stop_token().requested());
    reads += found ? 1 : 0;
  }
}

struct Load {
  ClientOptions options;
  int at_once = 1;
  uint64_t reads = 0;
};

class RingTokens {
 public:
  explicit RingTokens(const chain::ReplicaOptions& replica)
      : kv_({.nodes = 3, .nodes_first = 3, .clients = 0, .replica = replica}) {
    kv_.start(cluster_);
    EXPECT_TRUE(cluster_.run_until([this] { return kv_.unrest().empty(); }, 30_s));
  }
  void put(std::string key) {
    cluster_.node("writer").start([this, key](env::Env& env) { return put_once(env, key); });
    EXPECT_TRUE(cluster_.run_until([this] { return !cluster_.node("writer").is_running(); }, 60_s));
  }
  // All at once, each a client of its own.
  void run(std::vector<Load*> loads, Duration time) {
    for (size_t i = 0; i < loads.size(); ++i) {
      Load* const load = loads[i];
      cluster_.node("user" + std::to_string(i)).start([this, load, time](env::Env& env) {
        return run_load(env, *load, time);
      });
    }
    const auto are_done = [&] {
      for (size_t i = 0; i < loads.size(); ++i) {
        if (cluster_.node("user" + std::to_string(i)).is_running()) return false;
      }
      return true;
    };
    EXPECT_TRUE(cluster_.run_until(are_done, time + 20_s));
  }
  std::array<uint64_t, 3> gets() const {
    std::array<uint64_t, 3> all{};
    for (size_t i = 0; i < 3; ++i) all[i] = kv_.node(i)->replica().stats().gets;
    return all;
  }

  KvCluster kv_;
  sim::Cluster cluster_;

 private:
  Task<void> put_once(env::Env& env, std::string key) {
    Client client(env, {.seeds = kv_.seeds()});
    const auto put = co_await client.write(key, {.kind = Command::Kind::kPut, .value = "1"});
    EXPECT_TRUE(put.has_value());
    co_await client.close();
  }
  Task<void> run_load(env::Env& env, Load& load, Duration time) {
    ClientOptions options = load.options;
    options.seeds = kv_.seeds();
    Client client(env, options);
    std::vector<Task<void>> readers;
    for (int i = 0; i < load.at_once; ++i) {
      readers.push_back(read_until(env, client, env.now() + time, load.reads));
    }
    co_await task::when_all(std::move(readers));
    co_await client.close();
  }
};

chain::ReplicaOptions with_tokens(uint64_t least, uint64_t most, Duration target = 2_ms) {
  chain::ReplicaOptions options;
  options.shares.engine.scheduler = {
      .latency_target = target, .tokens_min = least, .tokens_max = most};
  return options;
}

TEST(RingTokens, ASlowReplicaGetsFewerReads) {
  RingTokens ring(with_tokens(6, 512));
  ring.put("a");
  const size_t slow = ring.kv_.chain_of("a")[1];
  ring.kv_.set_get_time(slow, 30_ms);
  const auto share_of_slow = [&](bool uses_tokens) {
    const std::array<uint64_t, 3> before = ring.gets();
    Load load{.options = {.uses_tokens = uses_tokens}, .at_once = 16};
    ring.run({&load}, 3_s);
    const std::array<uint64_t, 3> after = ring.gets();
    uint64_t all = 0;
    for (size_t i = 0; i < 3; ++i) all += after[i] - before[i];
    return static_cast<double>(after[slow] - before[slow]) / static_cast<double>(all);
  };
  EXPECT_LT(share_of_slow(true), 0.1);
  EXPECT_GT(share_of_slow(false), 0.25);
  // It gets its part when it is quick again.
  ring.kv_.set_get_time(slow, {});
  EXPECT_GT(share_of_slow(true), 0.2);
}

TEST(RingTokens, TenantsHaveTheirPartsWhileBothWantMore) {
  chain::ReplicaOptions options = with_tokens(24, 24);
  options.shares.weights = {{"three", 3}};
  RingTokens ring(options);
  ring.put("a");
  for (size_t i = 0; i < 3; ++i) ring.kv_.set_get_time(i, 4_ms);
  Load one{.options = {.tenant = "one"}, .at_once = 48};
  Load three{.options = {.tenant = "three"}, .at_once = 48};
  ring.run({&one, &three}, 4_s);
  const double ratio = static_cast<double>(three.reads) / static_cast<double>(one.reads);
  EXPECT_GT(ratio, 2.2);
  EXPECT_LT(ratio, 4.0);
  // Who is alone has all.
  Load alone{.options = {.tenant = "one"}, .at_once = 48};
  ring.run({&alone}, 4_s);
  EXPECT_GT(alone.reads, (one.reads + three.reads) * 8 / 10);
}

TEST(RingTokens, ManyCallersOfATenantHaveNoMoreThanOne) {
  chain::ReplicaOptions options = with_tokens(48, 48);
  RingTokens ring(options);
  ring.put("a");
  for (size_t i = 0; i < 3; ++i) ring.kv_.set_get_time(i, 4_ms);
  Load honest{.options = {.tenant = "honest"}, .at_once = 64};
  std::vector<Load> many(4, Load{.options = {.tenant = "many"}, .at_once = 32});
  ring.run({&honest, many.data(), &many[1], &many[2], &many[3]}, 4_s);
  uint64_t theirs = 0;
  for (const Load& each : many) theirs += each.reads;
  EXPECT_GT(honest.reads, theirs * 6 / 10);
}

// A caller that heeds no tokens fills its own tenant's queue, and nobody else's.
TEST(RingTokens, WhoIgnoresTokensMakesItsOwnTenantWait) {
  RingTokens ring(with_tokens(24, 24));
  ring.put("a");
  for (size_t i = 0; i < 3; ++i) ring.kv_.set_get_time(i, 4_ms);
  Load honest{.options = {.tenant = "honest"}, .at_once = 16};
  Load rude{.options = {.tenant = "rude", .uses_tokens = false}, .at_once = 256};
  ring.run({&honest, &rude}, 4_s);
  EXPECT_GT(honest.reads, rude.reads * 7 / 10);
}

TEST(RingTokens, NothingWaitsForEverWhereNodesHaveNoTokens) {
  RingTokens ring(with_tokens(1, 1));
  for (const char* key : {"a", "b", "c", "d"}) ring.put(key);
  Load first{.at_once = 20};
  Load second{.at_once = 20};
  ring.run({&first, &second}, 2_s);
  EXPECT_GT(first.reads, 200u);
  EXPECT_GT(second.reads, 200u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ring.kv_.node(i)->replica().shares().scheduler().active(), 0u);
  }
}

}  // namespace
}  // namespace cairn::kv
