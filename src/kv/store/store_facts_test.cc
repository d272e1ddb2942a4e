// SPDX-License-Identifier: Apache-2.0
// A store is a Keyspace, in every mode.
#include <memory>
#include <utility>

#include "kv/keyspace_testing.h"
#include "kv/store/store.h"
#include "testing/stack/stacks.h"

namespace cairn::kv::store {
namespace {

using task::Task;

constexpr const char* kDisk = "file:d,size=256M";

Task<void> run_on_disk(env::Env& env, KeyspaceBody body, Durability durability) {
  drive::SourceLeaves leaves;
  std::unique_ptr<drive::Drive> disk = co_await drive::must_open(env, kDisk, leaves);
  const Result<void> made = co_await format(env, *disk, {});
  EXPECT_EQ(outcome(made), "ok");
  Result<std::unique_ptr<Store>> opened =
      co_await Store::open(env, std::move(disk), {.durability = durability});
  EXPECT_TRUE(opened.has_value());
  if (opened) {
    co_await body(env, **opened);
    co_await (*opened)->close();
    opened->reset();
  }
  leaves.close();
}

template <Durability kDurability>
struct OnDisk {
  static void run(KeyspaceBody body) {
    drive::run_in_sim([body](env::Env& env) { return run_on_disk(env, body, kDurability); });
  }
};

using Places = ::testing::Types<OnDisk<Durability::kCommit>, OnDisk<Durability::kInterval>,
                                OnDisk<Durability::kNone>>;
INSTANTIATE_TYPED_TEST_SUITE_P(OnDisk, KeyspaceFacts, Places);

}  // namespace
}  // namespace cairn::kv::store
