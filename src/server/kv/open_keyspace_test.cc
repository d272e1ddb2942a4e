// SPDX-License-Identifier: Apache-2.0
#include "server/kv/open_keyspace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/kv/check.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::server {
namespace {

using task::Task;

constexpr const char* kStack = "file:/kv,size=64M";

// Puts a number.
class Count final : public kv::Change {
 public:
  explicit Count(uint64_t number) : Change(Needs::kNothing), number_(number) {}
  Result<void> decide(std::span<const std::optional<kv::Entry>>,
                      std::span<kv::Edit> edits) override {
    edits[0] = {.kind = kv::Edit::Kind::kPut, .value = std::to_string(number_)};
    return {};
  }

 private:
  const uint64_t number_;
};

// What the world outside was told.
struct Told {
  uint64_t acknowledged = 0;
  uint64_t opened = 0;
  std::string problem;
};

// Checks that what was acknowledged is there, and counts on until the node goes.
Task<void> count_on(env::Env& env, KeyspaceArgs args, Told& told) {
  Attempt<std::unique_ptr<OpenKeyspace>> keyspace = co_await open_keyspace(env, args);
  if (!keyspace) {
    told.problem = keyspace.error().text;
    co_return;
  }
  const std::string_view key = "count";
  const Result<std::optional<kv::Entry>> found = co_await (*keyspace)->keys().get(key);
  uint64_t count = 0;
  if (found) {
    if (*found) count = std::stoull((**found).value);
    EXPECT_GE(count, told.acknowledged);
    EXPECT_LE(count, told.acknowledged + 1);
    ++told.opened;
  }
  while (!env.stop_token().requested()) {
    Count change(++count);
    const Result<void> done = co_await (*keyspace)->keys().transact({&key, 1}, change);
    if (!done) break;
    told.acknowledged = count;
  }
  co_await (*keyspace)->close();
}

TEST(OpenKeyspace, OnADriveWhatWasAcknowledgedSurvivesCrashes) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Told told;
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("a");
    node.start([&told](env::Env& env) { return count_on(env, {.stack = kStack}, told); });
    for (uint64_t crash = 1; crash <= 5; ++crash) {
      const uint64_t before = told.acknowledged;
      ASSERT_TRUE(cluster.run_until([&] { return told.acknowledged > before + 20 * crash; }, 60_s))
          << told.problem;
      crash % 2 == 0 ? node.kill() : node.crash();
      node.restart();
    }
    ASSERT_TRUE(cluster.run_until([&] { return told.opened == 6; }, 60_s)) << told.problem;
    node.stop();
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 60_s));
    EXPECT_EQ(told.problem, "");
  }
}

Task<void> expect_problem(env::Env& env, KeyspaceArgs args, std::string part) {
  const Attempt<std::unique_ptr<OpenKeyspace>> keyspace = co_await open_keyspace(env, args);
  EXPECT_FALSE(keyspace.has_value());
  if (keyspace) co_return;
  EXPECT_NE(keyspace.error().text.find(part), std::string::npos) << keyspace.error().text;
}

SIM_TEST(OpenKeyspace, ADriveThatHoldsSomethingElseIsTakenOnlyWhenToldSo) {
  const std::string other = "atomic(file:/other,size=64M)";
  {
    Attempt<std::unique_ptr<OpenKeyspace>> keyspace = co_await open_keyspace(env, {.stack = other});
    CO_ASSERT_TRUE(keyspace.has_value());
    co_await (*keyspace)->close();
  }
  co_await expect_problem(env, {.stack = "file:/other"}, "--format");
  Attempt<std::unique_ptr<OpenKeyspace>> keyspace =
      co_await open_keyspace(env, {.stack = "file:/other", .may_format = true});
  CO_ASSERT_TRUE(keyspace.has_value());
  EXPECT_EQ((*keyspace)->keeper(), "drive");
  EXPECT_EQ((*keyspace)->durability(), "commit");
  Count change(7);
  const std::string_view key = "count";
  EXPECT_TRUE((co_await (*keyspace)->keys().transact({&key, 1}, change)).has_value());
  co_await (*keyspace)->close();
  // It is a store now, and stays one.
  keyspace = co_await open_keyspace(env, {.stack = "file:/other", .may_format = true});
  CO_ASSERT_TRUE(keyspace.has_value());
  EXPECT_EQ((*keyspace)->keys().size(), 1U);
  co_await (*keyspace)->close();
  const Attempt<kv::store::CheckReport> report = co_await check_store(env, "file:/other");
  CO_ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->keys, 1U);
  EXPECT_EQ(report->damaged, 0U);
}

SIM_TEST(OpenKeyspace, ADriveThatIsTooSmallIsRefused) {
  co_await expect_problem(env, {.stack = "file:/tiny,size=64K"}, "too small");
  const Attempt<kv::store::CheckReport> report = co_await check_store(env, "file:/blank,size=64M");
  EXPECT_FALSE(report.has_value());
}

}  // namespace
}  // namespace cairn::server
