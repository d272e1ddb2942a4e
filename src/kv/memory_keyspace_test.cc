// SPDX-License-Identifier: Apache-2.0
#include "kv/memory_keyspace.h"

#include <gtest/gtest.h>

#include <string>

#include "kv/keyspace_testing.h"
#include "world/sim/cluster.h"

namespace cairn::kv {
namespace {

struct InMemory {
  static void run(KeyspaceBody body) { run(body, {}); }
  static void run(KeyspaceBody body, const MemoryKeyspaceOptions& options) {
    sim::Cluster cluster;
    sim::Node& node = cluster.node("a");
    node.start([body, options](env::Env& env) { return serve(env, body, options); });
    EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 100'000_s));
  }

 private:
  static task::Task<void> serve(env::Env& env, KeyspaceBody body, MemoryKeyspaceOptions options) {
    MemoryKeyspace keys(env, options);
    co_await body(env, keys);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(InMemory, KeyspaceFacts, InMemory);

task::Task<void> fill(env::Env&, Keyspace& keys) {
  std::string last;
  Result<void> done;
  for (int i = 0; done; ++i) {
    last = "key" + std::to_string(i);
    done = co_await put(keys, last, std::string(1000, 'v'));
  }
  EXPECT_EQ(outcome(done), "no_space");
  EXPECT_GT(keys.size(), 50U);
  co_await expect_value(keys, last, "(none)");
  co_await expect_put(keys, "key0", "shorter");
  co_await expect_erased(keys, "key1");
  co_await expect_erased(keys, "key2");
  co_await expect_put(keys, last, std::string(1000, 'v'));
}

TEST(MemoryKeyspace, IsFullAtItsLimitAndThenStillReadsAndErases) {
  InMemory::run(&fill, {.bytes_max = 100'000});
}

task::Task<void> expire_many(env::Env& env, Keyspace& keys) {
  const WallTime end = after(env, 2_s);
  for (int i = 0; i < 5000; ++i) co_await expect_put(keys, std::to_string(i), "v", end);
  const Result<void> slept = co_await task::sleep_for(env, 3_s);
  EXPECT_TRUE(slept.has_value());
  EXPECT_EQ(keys.size(), 0U) << "nobody has asked for them";
  EXPECT_EQ(static_cast<MemoryKeyspace&>(keys).bytes(), 0U);
}

TEST(MemoryKeyspace, ErasesWhatHasExpiredByItself) { InMemory::run(&expire_many); }

}  // namespace
}  // namespace cairn::kv
