// SPDX-License-Identifier: Apache-2.0
// Exports that come and go while clients are there.
#include <gtest/gtest.h>

#include <vector>

#include "door/door.h"

namespace cairn::door_tests {
namespace {

WORLD_TEST_SUITE(NbdComings);

WORLD_TEST(NbdComings, AnExportThatComesLaterIsFoundOnEveryCore) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient before(env);
  co_await sure(before.arrive(door.address, "a", true));
  co_await door.add({.name = "late", .description = "another"}, "mem:size=2M");
  for (uint32_t i = 0; i < env.core_count() + 1; ++i) {
    NbdClient client(env);
    const Told told = co_await sure(client.arrive(door.address, "late", true));
    EXPECT_EQ(told.size, 2u << 20);
    client.hang_up();
  }
  const Answer still = co_await sure(before.call({.command = Command::kRead, .length = 16}));
  EXPECT_EQ(still.error, 0u);
  before.hang_up();
  co_await door.close();
}

WORLD_TEST(NbdComings, OneThatGoesEndsItsClientsAndNoOthers) {
  Door door(env);
  co_await door.open(scene.any_port());
  NbdClient user(env);
  NbdClient chooser(env);
  NbdClient other(env);
  co_await sure(user.arrive(door.address, "a", true));
  co_await sure(chooser.dial(door.address));
  co_await sure(chooser.greet());
  co_await sure(chooser.go("a", door::nbd::Option::kInfo));
  co_await sure(other.arrive(door.address, "small", true));
  const Result<void> removed = co_await door.server().remove("a", env.now() + 10_s);
  EXPECT_TRUE(removed);
  const Result<Answer> gone = co_await user.call({.command = Command::kRead, .length = 16});
  EXPECT_FALSE(gone);
  const Result<Told> late = co_await chooser.go("a");
  EXPECT_FALSE(late);
  const Answer answer = co_await sure(other.call({.command = Command::kRead, .length = 16}));
  EXPECT_EQ(answer.error, 0u);
  NbdClient next(env);
  co_await sure(next.dial(door.address));
  co_await sure(next.greet());
  const Result<Told> unknown = co_await next.go("a");
  EXPECT_EQ(unknown.error(), Errc::kNotFound);
  const Result<void> again = co_await door.server().remove("a", env.now() + 10_s);
  EXPECT_EQ(again.error(), Errc::kNotFound);
  user.hang_up();
  chooser.hang_up();
  next.hang_up();
  // Its name is free.
  co_await door.add({.name = "a"}, "mem:size=1M");
  NbdClient newcomer(env);
  const Told told = co_await sure(newcomer.arrive(door.address, "a", true));
  EXPECT_EQ(told.size, 1u << 20);
  newcomer.hang_up();
  other.hang_up();
  co_await door.close();
}

}  // namespace
}  // namespace cairn::door_tests
