// SPDX-License-Identifier: Apache-2.0
// Cores and the messages between them; what each core has of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "env/call.h"
#include "env/env.h"
#include "env/memory.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/task.h"
#include "task/when_all.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Env;
using env::Message;
using task::Event;
using task::Task;

template <class World>
class Cores : public Conformance<World> {
  Setting setting() const override { return {.cores = 3}; }
};
TYPED_TEST_SUITE(Cores, Worlds, WorldNames);

WORLD_TEST(Cores, AreNumberedAndKnowTheirCount) {
  EXPECT_EQ(env.core(), CoreId(0)) << "the program runs on the first";
  EXPECT_EQ(env.core_count(), 3u);
  for (uint32_t i = 0; i < env.core_count(); ++i) {
    const CoreId there = co_await env::call_on(env, CoreId(i), [](Env& e) { return e.core(); });
    const uint32_t count =
        co_await env::call_on(env, CoreId(i), [](Env& e) { return e.core_count(); });
    EXPECT_EQ(there, CoreId(i));
    EXPECT_EQ(count, 3u);
  }
}

struct Note : Message {
  explicit Note(bool& flag) : Message(&arrive), ran(flag) {}
  static void arrive(Message& message, Env& env) {
    auto& self = static_cast<Note&>(message);
    self.ran = true;
    self.core = env.core();
    self.done.set();
  }
  bool& ran;
  CoreId core = CoreId(99);
  Event done;
};

WORLD_TEST(Cores, PostToSelfRunsLaterNotInside) {
  bool ran = false;
  Note note(ran);
  env.post(env.core(), note);
  EXPECT_FALSE(ran);
  const Result<void> waited = co_await note.done.wait();
  EXPECT_EQ(outcome(waited), "ok");
  EXPECT_TRUE(ran);
  EXPECT_EQ(note.core, env.core());
}

// A numbered message, and the place where all of one direction arrive.
struct Lane {
  uint32_t arrived = 0;
  bool in_order = true;
};
struct Numbered : Message {
  Numbered() : Message(&arrive) {}
  static void arrive(Message& message, Env&) {
    auto& self = static_cast<Numbered&>(message);
    self.lane->in_order &= self.lane->arrived == self.number;
    ++self.lane->arrived;
  }
  Lane* lane = nullptr;
  uint32_t number = 0;
};

// Posts `count` numbered messages to `to` and waits until the last has run.
Task<bool> send_many(Env& env, CoreId to, uint32_t count) {
  Lane lane;
  std::vector<Numbered> messages(count);
  for (uint32_t i = 0; i < count; ++i) {
    messages[i].lane = &lane;
    messages[i].number = i;
    env.post(to, messages[i]);
    if (i % 1000 == 999) co_await turn(env);
  }
  // Behind all of them, in order: when this returns, they have run.
  const bool all = co_await env::call_on(
      env, to, [&lane, count](Env&) { return lane.in_order && lane.arrived == count; });
  co_return all;
}

WORLD_TEST(Cores, StormOfMessagesBothWaysKeepsTheOrderOfEachPair) {
  constexpr uint32_t kMessages = 100'000;
  Task<bool> there = send_many(env, CoreId(1), kMessages);
  const bool back = co_await env::call_on(
      env, CoreId(1), [](Env& e) { return send_many(e, CoreId(0), kMessages); });
  const bool arrived = co_await there;
  EXPECT_TRUE(back);
  EXPECT_TRUE(arrived);
}

Task<bool> storm_from(Env& env) {
  bool all = true;
  for (uint32_t to = 0; to < env.core_count(); ++to) {
    const bool arrived = co_await send_many(env, CoreId(to), 5000);
    all = all && arrived;
  }
  co_return all;
}

WORLD_TEST(Cores, EveryCoreSendsToEveryCore) {
  std::vector<Task<bool>> storms;
  for (uint32_t from = 0; from < env.core_count(); ++from) {
    storms.push_back(env::call_on(env, CoreId(from), [](Env& e) { return storm_from(e); }));
  }
  const std::vector<bool> arrived = co_await task::when_all(std::move(storms));
  EXPECT_TRUE(std::ranges::all_of(arrived, [](bool each) { return each; }));
}

// Bounces between two cores until its count is used up.
struct Ball : Message {
  Ball() : Message(&bounce) {}
  static void bounce(Message& message, Env& env) {
    auto& self = static_cast<Ball&>(message);
    if (self.left == 0 && env.core() == CoreId(0)) return self.done.set();
    if (self.left > 0) --self.left;
    env.post(CoreId(env.core().value() == 0 ? 1 : 0), self);
  }
  uint32_t left = 2000;
  Event done;
};

WORLD_TEST(Cores, MessageMayBePostedAgainWhileItRuns) {
  std::array<Ball, 16> balls;
  for (Ball& ball : balls) env.post(CoreId(1), ball);
  for (Ball& ball : balls) {
    const Result<void> waited = co_await ball.done.wait();
    EXPECT_EQ(outcome(waited), "ok");
    EXPECT_EQ(ball.left, 0u);
  }
}

Task<int> slow_answer(Env& there, int question) {
  const Result<void> slept = co_await task::sleep_for(there, 1_ms);
  co_return slept ? question + 1 : -1;
}
Task<void> slow_note(Env& there, CoreId& ran_on) {
  const Result<void> slept = co_await task::sleep_for(there, 1_ms);
  must(slept);
  ran_on = there.core();
}

WORLD_TEST(Cores, CallOnBringsBackValuesNothingAndTasks) {
  for (uint32_t i = 0; i < env.core_count(); ++i) {
    const CoreId there(i);
    const int value = co_await env::call_on(env, there, [](Env&) { return 41; });
    EXPECT_EQ(value, 41);
    CoreId ran_on(99);
    co_await env::call_on(env, there, [&ran_on](Env& e) { ran_on = e.core(); });
    EXPECT_EQ(ran_on, there);
    const int answer = co_await env::call_on(env, there, [](Env& e) { return slow_answer(e, 1); });
    EXPECT_EQ(answer, 2);
    ran_on = CoreId(99);
    co_await env::call_on(env, there, [&ran_on](Env& e) { return slow_note(e, ran_on); });
    EXPECT_EQ(ran_on, there);
    const auto owned =
        co_await env::call_on(env, there, [](Env&) { return std::make_unique<int>(7); });
    EXPECT_EQ(*owned, 7);
  }
}

WORLD_TEST(Cores, ManyCallsAtOnceComeBackToTheirCallers) {
  std::vector<Task<int>> calls;
  for (int i = 0; i < 300; ++i) {
    const CoreId there(static_cast<uint32_t>(i) % env.core_count());
    calls.push_back(env::call_on(env, there, [i](Env& e) { return slow_answer(e, i); }));
  }
  const std::vector<int> answers = co_await task::when_all(std::move(calls));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(answers[static_cast<size_t>(i)], i + 1);
}

// A connection of one core's own: timers, streams and disks work on every core alike.
Task<bool> live_on(Env& there, Scene& scene, std::string name) {
  const Pair pair = co_await connected(there, scene);
  const std::vector<std::byte> message = pattern(10'000, there.core().value());
  Task<Result<std::vector<std::byte>>> reading = drain(*pair.b);
  const Result<void> written = co_await pair.a->write(message);
  must(pair.a->finish());
  const auto arrived = co_await reading;
  const auto disk = must(there.open_disk(scene.disk(name, 64_KiB)));
  const Buffer buffer = patterned(there, 8192, 1);
  const Result<void> stored = co_await disk->write(0, buffer.bytes());
  const Result<void> slept = co_await task::sleep_for(there, 1_ms);
  EXPECT_EQ(outcome(written), "ok");
  EXPECT_EQ(outcome(stored), "ok");
  EXPECT_EQ(outcome(slept), "ok");
  co_return arrived.has_value() && *arrived == message;
}

WORLD_TEST(Cores, EachHasStreamsDisksAndTimersOfItsOwn) {
  for (uint32_t i = 0; i < env.core_count(); ++i) {
    const bool alive = co_await env::call_on(env, CoreId(i), [&scene, i](Env& there) {
      return live_on(there, scene, "disk_of_core_" + std::to_string(i));
    });
    EXPECT_TRUE(alive) << "core " << i;
  }
}

WORLD_TEST(Cores, BuffersAreAlignedAndComeBack) {
  const size_t before = env.buffers().in_use();
  {
    std::vector<Buffer> held;
    for (const size_t size :
         {size_t{1}, size_t{4096}, size_t{5000}, size_t{65536}, size_t{1} << 20}) {
      held.push_back(must(env.buffers().allocate(size)));
      EXPECT_EQ(held.back().size(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back().data()) % BufferPool::kAlignment, 0u);
    }
    EXPECT_EQ(env.buffers().in_use(), before + 5);
  }
  EXPECT_EQ(env.buffers().in_use(), before);
  EXPECT_EQ(outcome(env.buffers().allocate(0)), "invalid");
  EXPECT_EQ(outcome(env.buffers().allocate(env.buffers().size_max() + 1)), "invalid");
  co_return;
}

WORLD_TEST(Cores, BuffersRunOutWithALimitAndRecover) {
  std::vector<Buffer> held;
  Result<Buffer> next = env.buffers().allocate(env.buffers().size_max());
  while (next) {
    held.push_back(std::move(*next));
    next = env.buffers().allocate(env.buffers().size_max());
  }
  EXPECT_EQ(outcome(next), "limit");
  held.pop_back();
  EXPECT_EQ(outcome(env.buffers().allocate(env.buffers().size_max())), "ok");
  const bool other = co_await env::call_on(env, CoreId(1), [](Env& there) {
    return there.buffers().allocate(there.buffers().size_max()).has_value();
  });
  EXPECT_TRUE(other) << "each core has its own";
}

WORLD_TEST(Cores, MemoryIsZeroUntilWrittenAndAfterDiscard) {
  constexpr uint64_t kSize = 1_MiB + 100;
  for (const env::MemoryPages pages : {env::MemoryPages::kLarge, env::MemoryPages::kSmall}) {
    const std::unique_ptr<env::Memory> memory = must(env.map_memory(kSize, pages));
    EXPECT_EQ(memory->bytes().size(), kSize);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->bytes().data()) % 4096, 0u);
    EXPECT_TRUE(is_zero(memory->bytes()));
    fill_pattern(memory->bytes(), 1);
    memory->discard(1000, 500'000);
    EXPECT_TRUE(is_pattern(memory->bytes().first(1000), 1));
    EXPECT_TRUE(is_zero(memory->bytes().subspan(1000, 500'000)));
    EXPECT_TRUE(is_pattern(memory->bytes().subspan(501'000), 1, 501'000));
  }
  EXPECT_EQ(outcome(env.map_memory(0)), "invalid");
  co_return;
}

WORLD_TEST(Cores, RandomNumbersAndSecretsDiffer) {
  std::array<std::byte, 37> one{};
  std::array<std::byte, 37> two{};
  env.fill_secret(one);
  env.fill_secret(two);
  EXPECT_NE(one, two);
  const uint64_t here = env.rng().next();
  const uint64_t there =
      co_await env::call_on(env, CoreId(1), [](Env& e) { return e.rng().next(); });
  EXPECT_NE(here, there);
}

}  // namespace
}  // namespace cairn::conformance
