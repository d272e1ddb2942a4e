// SPDX-License-Identifier: Apache-2.0
// Another size for an export, on every core or on none.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "door/door.h"
#include "testing/drive/stubborn.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(NbdResize);

// What clients are told, one on each core.
Task<std::vector<uint64_t>> sizes(env::Env& env, Door& door) {
  std::vector<uint64_t> told;
  for (uint32_t core = 0; core < env.core_count(); ++core) {
    NbdClient client(env);
    const Told one = co_await sure(client.arrive(door.address, "s", true));
    told.push_back(one.size);
  }
  co_return told;
}

WORLD_TEST(NbdResize, ReachesEveryCoreOrIsUndone) {
  Door door(env);
  auto source = must(drive::Source::make(env, drive::Spec::parse("mem:size=1M").value()));
  auto stubborn = std::make_unique<drive::StubbornSource>(*source, CoreId(env.core_count() - 1));
  drive::StubbornSource& made = *stubborn;
  co_await door.add({.name = "s", .description = ""}, std::move(stubborn));
  door.address = must(door.server().listen(scene.any_port()));
  const std::vector<uint64_t> before(env.core_count(), 1 << 20);
  EXPECT_EQ(co_await sizes(env, door), before);

  made.refuse(2 << 20);
  Result<void> resized = co_await door.server().resize("s", 2 << 20);
  EXPECT_EQ(resized.error(), Errc::kNoSpace);
  EXPECT_EQ(co_await sizes(env, door), before);
  EXPECT_EQ(door.server().size("s").value_or(0), 1u << 20);

  made.refuse(0);
  resized = co_await door.server().resize("s", 2 << 20);
  EXPECT_TRUE(resized);
  EXPECT_EQ(co_await sizes(env, door), std::vector<uint64_t>(env.core_count(), 2 << 20));
  EXPECT_EQ(door.server().size("none").error(), Errc::kNotFound);
  co_await door.close();
}

}  // namespace
}  // namespace cairn::door_tests
