// SPDX-License-Identifier: Apache-2.0
// The fixture of the conformance suite, and how a fact about all worlds is written:
//
//   WORLD_TEST(Streams, ReadOfNothingIsDoneAtOnce) {
//     Pair pair = co_await connected(env, scene);
//     const Result<size_t> got = co_await pair.a->read(MutableBytes{});
//     EXPECT_EQ(got.value(), 0u);
//   }
//
// becomes Streams/uring.ReadOfNothing..., Streams/epoll.ReadOfNothing... and so on. The body is a
// coroutine `(Env& env, Scene& scene)`: EXPECT_* works, ASSERT_* does not; must() takes its place.
// No fact depends on timing. What never completes ends the program with a message (watchdog.h).
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "env/env.h"
#include "task/task.h"
#include "testing/worlds/scene.h"
#include "testing/worlds/worlds.h"

namespace cairn::conformance {

template <class World>
class Conformance : public testing::Test {
 protected:
  void run(Body body) { World::run(setting(), body); }
  virtual Setting setting() const { return {}; }
};

struct WorldNames {
  template <class World>
  static std::string GetName(int) {
    return World::kName;
  }
};

}  // namespace cairn::conformance

// The check wants parentheses around a name that is being declared, where the language has none.
// NOLINTBEGIN(bugprone-macro-parentheses)

// A group of facts. In an anonymous namespace inside cairn::conformance, once per file.
#define WORLD_TEST_SUITE(suite)               \
  template <class World>                      \
  class suite : public Conformance<World> {}; \
  TYPED_TEST_SUITE(suite, Worlds, WorldNames)

// The same, for what also holds of streams through TLS.
#define STREAM_TEST_SUITE(suite)              \
  template <class World>                      \
  class suite : public Conformance<World> {}; \
  TYPED_TEST_SUITE(suite, StreamWorlds, WorldNames)

// NOLINTEND(bugprone-macro-parentheses)

#define WORLD_TEST(suite, fact)                                 \
  task::Task<void> suite##_##fact(env::Env& env, Scene& scene); \
  TYPED_TEST(suite, fact) { this->run(&suite##_##fact); }       \
  task::Task<void> suite##_##fact([[maybe_unused]] env::Env& env, [[maybe_unused]] Scene& scene)
