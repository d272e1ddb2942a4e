// SPDX-License-Identifier: Apache-2.0
// Pollers: what a core looks at again and again.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "conformance/sharing_verbs.h"
#include "env/call.h"
#include "env/env.h"
#include "env/shared_word.h"
#include "env/sharing.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Env;
using env::Poller;
using task::Task;

WORLD_TEST_SUITE(Pollers);

// Sets its event at the given look, and counts on.
struct Counter : Poller {
  explicit Counter(uint64_t wanted) : target(wanted) {}
  bool poll() override {
    if (++polls == target) reached.set();
    return false;
  }
  uint64_t target;
  uint64_t polls = 0;
  task::Event reached;
};

WORLD_TEST(Pollers, AreLookedAtUntilTheyAreUnlisted) {
  Counter counter(1000);
  EXPECT_EQ(counter.polls, 0u);
  shared(env).add_poller(counter);
  const Result<void> reached = co_await counter.reached.wait();
  EXPECT_EQ(outcome(reached), "ok");
  shared(env).remove_poller(counter);
  const uint64_t before = counter.polls;
  co_await turn(env);
  EXPECT_EQ(counter.polls, before);
}

WORLD_TEST(Pollers, LetTheOthersHaveTheirTurn) {
  Counter counter(0);
  shared(env).add_poller(counter);
  Pair pair = co_await connected(env, scene);
  const auto sent = pattern(100'000, 1);
  Task<Result<void>> writing = write_all(*pair.a, sent);
  std::vector<std::byte> got(sent.size());
  size_t count = 0;
  while (count < got.size()) {
    const Result<size_t> some = co_await pair.b->read(MutableBytes(got).subspan(count));
    count += must(some);
  }
  const Result<void> written = co_await writing;
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_EQ(got, sent);
  const Result<void> slept = co_await task::sleep_for(env, 1_ms);
  EXPECT_EQ(outcome(slept), "ok");
  for (int i = 0; i < 100; ++i) {
    const CoreId there = co_await env::call_on(env, CoreId(1), [](Env& e) { return e.core(); });
    EXPECT_EQ(there, CoreId(1));
  }
  EXPECT_GT(counter.polls, 0u);
  shared(env).remove_poller(counter);
}

WORLD_TEST(Pollers, OfAnotherCoreLetItsMessagesThrough) {
  Counter counter(0);
  co_await env::call_on(env, CoreId(1), [&](Env& e) { shared(e).add_poller(counter); });
  for (int i = 0; i < 100; ++i) {
    const CoreId there = co_await env::call_on(env, CoreId(1), [](Env& e) { return e.core(); });
    EXPECT_EQ(there, CoreId(1));
  }
  co_await env::call_on(env, CoreId(1), [&](Env& e) { shared(e).remove_poller(counter); });
}

// Goes from the list by its own poll, and says so.
struct Once final : Poller {
  Once(Env& its_env, task::Event& event) : env(its_env), done(event) {}
  bool poll() override {
    ++polls;
    shared(env).remove_poller(*this);
    done.set();
    return true;
  }
  Env& env;
  task::Event& done;
  int polls = 0;
};

WORLD_TEST(Pollers, UnlistThemselves) {
  for (int round = 0; round < 3; ++round) {
    task::Event done;
    Once once(env, done);
    shared(env).add_poller(once);
    const Result<void> waited = co_await done.wait();
    EXPECT_EQ(outcome(waited), "ok");
    co_await turn(env);
    EXPECT_EQ(once.polls, 1);
  }
}

// Takes its neighbours off the list and lists another instead, which then ends it all.
struct Gardener final : Poller {
  Gardener(Env& its_env, Poller& one, Poller& two, Poller& next)
      : env(its_env), before(one), after(two), other(next) {}
  bool poll() override {
    if (polls++ > 0) return true;
    shared(env).remove_poller(before);
    shared(env).remove_poller(after);
    shared(env).add_poller(other);
    return true;
  }
  Env& env;
  Poller& before;
  Poller& after;
  Poller& other;
  int polls = 0;
};

WORLD_TEST(Pollers, ListAndUnlistOthers) {
  task::Event done;
  Counter before(0);
  Counter after(0);
  Once last(env, done);
  Gardener gardener(env, before, after, last);
  shared(env).add_poller(before);
  shared(env).add_poller(gardener);
  shared(env).add_poller(after);
  const Result<void> waited = co_await done.wait();
  EXPECT_EQ(outcome(waited), "ok");
  EXPECT_LE(before.polls, 1u);
  EXPECT_EQ(after.polls, 0u);
  EXPECT_GE(gardener.polls, 1);
  shared(env).remove_poller(gardener);
  // Once more off the list is no change.
  shared(env).remove_poller(before);
}

// A door's way: look at memory that another core writes to.
struct Doorbell final : Poller {
  explicit Doorbell(const env::SharedMemory& its_memory) : memory(its_memory) {}
  bool poll() override {
    const auto rung = env::load_shared<uint32_t>(memory.bytes().data());
    if (rung == seen) return false;
    seen = rung;
    changed.set();
    return true;
  }
  const env::SharedMemory& memory;
  uint32_t seen = 0;
  task::Event changed;
};

WORLD_TEST(Pollers, SeeWhatAnotherCoreWrites) {
  const env::Descriptor descriptor = must(shared(env).make_shared_memory(4096));
  const auto here = must(shared(env).map_shared(descriptor, {.size = 4096}));
  const auto there = must(shared(env).map_shared(descriptor, {.size = 4096}));
  Doorbell doorbell(*here);
  shared(env).add_poller(doorbell);
  for (uint32_t value = 1; value <= 50; ++value) {
    co_await env::call_on(env, CoreId(1),
                          [&](Env&) { env::store_shared<uint32_t>(there->bytes().data(), value); });
    const Result<void> rung = co_await doorbell.changed.wait();
    EXPECT_EQ(outcome(rung), "ok");
    EXPECT_EQ(doorbell.seen, value);
    doorbell.changed.reset();
  }
  shared(env).remove_poller(doorbell);
}

}  // namespace
}  // namespace cairn::conformance
