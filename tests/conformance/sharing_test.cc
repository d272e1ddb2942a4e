// SPDX-License-Identifier: Apache-2.0
// Memory and signals that processes share, between two holders.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/units.h"
#include "conformance/sharing_verbs.h"
#include "env/call.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::conformance {
namespace {

using env::Descriptor;
using env::Env;
using env::SharedMemory;
using env::SharedRange;
using env::Signal;
using task::CancelSource;
using task::Task;

WORLD_TEST_SUITE(SharedMemories);
WORLD_TEST_SUITE(Signals);

constexpr uint64_t kPage = 4096;

WORLD_TEST(SharedMemories, AreNewAndZero) {
  const Descriptor descriptor = must(shared(env).make_shared_memory(3 * kPage));
  const auto memory = must(shared(env).map_shared(descriptor, {.size = 3 * kPage}));
  EXPECT_EQ(memory->bytes().size(), 3 * kPage);
  EXPECT_TRUE(is_zero(memory->bytes()));
  EXPECT_TRUE(memory->is_whole());
  EXPECT_EQ(outcome(shared(env).make_shared_memory(0)), "invalid");
  co_return;
}

WORLD_TEST(SharedMemories, AreSeenByAllWhoMapThem) {
  const Descriptor descriptor = must(shared(env).make_shared_memory(4 * kPage));
  const Descriptor again = must(shared(env).duplicate(descriptor));
  const auto all = must(shared(env).map_shared(descriptor, {.size = 4 * kPage}));
  const auto part =
      must(shared(env).map_shared(again, {.offset = 2 * kPage, .size = 10, .writable = false}));
  EXPECT_EQ(part->bytes().size(), 10u);
  fill_pattern(all->bytes(), 1);
  EXPECT_TRUE(is_pattern(part->bytes(), 1, 2 * kPage));
  const bool there = co_await env::call_on(env, CoreId(1), [&](Env& e) {
    const auto mapped = must(shared(e).map_shared(again, {.offset = kPage, .size = kPage}));
    const bool seen = is_pattern(mapped->bytes(), 1, kPage);
    fill_pattern(mapped->bytes(), 2, kPage);
    return seen;
  });
  EXPECT_TRUE(there);
  EXPECT_TRUE(is_pattern(all->bytes().subspan(kPage, kPage), 2, kPage));
}

WORLD_TEST(SharedMemories, OutliveTheirDescriptors) {
  std::unique_ptr<SharedMemory> one;
  std::unique_ptr<SharedMemory> other;
  {
    Descriptor descriptor = must(shared(env).make_shared_memory(kPage));
    const Descriptor again = must(shared(env).duplicate(descriptor));
    one = must(shared(env).map_shared(descriptor, {.size = kPage}));
    descriptor = Descriptor();
    EXPECT_FALSE(descriptor.is_valid());
    other = must(shared(env).map_shared(again, {.size = kPage}));
  }
  fill_pattern(one->bytes(), 3);
  EXPECT_TRUE(is_pattern(other->bytes(), 3));
  one.reset();
  EXPECT_TRUE(is_pattern(other->bytes(), 3));
  co_return;
}

WORLD_TEST(SharedMemories, AreMappedWithinTheirSize) {
  const Descriptor descriptor = must(shared(env).make_shared_memory(2 * kPage));
  const std::vector<SharedRange> wrong = {
      {.size = 0},
      {.size = 2 * kPage + 1},
      {.offset = 1, .size = 1},
      {.offset = kPage, .size = 2 * kPage},
      {.offset = 2 * kPage, .size = 1},
      {.offset = kPage, .size = UINT64_MAX},
      {.offset = UINT64_MAX - kPage + 1, .size = kPage},
  };
  for (const SharedRange& range : wrong) {
    EXPECT_EQ(outcome(shared(env).map_shared(descriptor, range)), "invalid")
        << range.offset << " " << range.size;
  }
  const auto last = shared(env).map_shared(descriptor, {.offset = kPage, .size = kPage});
  EXPECT_EQ(outcome(last), "ok");
  co_return;
}

WORLD_TEST(SharedMemories, AreNoSignals) {
  const Descriptor memory = must(shared(env).make_shared_memory(kPage));
  const Descriptor signal = must(shared(env).make_signal());
  EXPECT_EQ(outcome(shared(env).map_shared(signal, {.size = 8})), "invalid");
  EXPECT_EQ(outcome(shared(env).open_signal(memory)), "invalid");
  co_return;
}

WORLD_TEST(SharedMemories, TakenAwayReadAsZeroes) {
  const Descriptor foreign = scene.foreign_memory(env, 4 * kPage);
  const Descriptor safe = must(shared(env).make_shared_memory(kPage));
  const auto torn = must(shared(env).map_shared(foreign, {.size = 4 * kPage}));
  const auto front = must(shared(env).map_shared(foreign, {.size = kPage}));
  const auto other = must(shared(env).map_shared(safe, {.size = kPage}));
  fill_pattern(torn->bytes(), 1);
  fill_pattern(other->bytes(), 2);
  scene.shrink(foreign, kPage);
  EXPECT_TRUE(is_zero(torn->bytes().subspan(kPage)));
  EXPECT_FALSE(torn->is_whole());
  fill_pattern(torn->bytes().subspan(kPage), 3);
  EXPECT_TRUE(is_pattern(torn->bytes().first(kPage), 1)) << "what is left stays";
  EXPECT_TRUE(is_pattern(front->bytes(), 1));
  EXPECT_TRUE(front->is_whole());
  EXPECT_TRUE(is_pattern(other->bytes(), 2));
  EXPECT_TRUE(other->is_whole());
  EXPECT_EQ(outcome(shared(env).map_shared(foreign, {.size = 4 * kPage})), "invalid");
  co_return;
}

WORLD_TEST(SharedMemories, TakenAwayUnderAnotherCoreHarmNobody) {
  const Descriptor foreign = scene.foreign_memory(env, 4 * kPage);
  const auto torn = must(shared(env).map_shared(foreign, {.size = 4 * kPage}));
  scene.shrink(foreign, 0);
  const bool zero = co_await env::call_on(env, CoreId(1), [&](Env&) {
    torn->bytes()[kPage] = std::byte{1};
    return is_zero(torn->bytes().subspan(2 * kPage));
  });
  EXPECT_TRUE(zero);
  EXPECT_FALSE(torn->is_whole());
}

// --- signals ------------------------------------------------------------------------------------

struct Ends {
  std::unique_ptr<Signal> raised;
  std::unique_ptr<Signal> waited;
};
Ends signal_ends(Env& env) {
  const Descriptor descriptor = must(shared(env).make_signal());
  return {must(shared(env).open_signal(descriptor)), must(shared(env).open_signal(descriptor))};
}

// A wait that nothing ends but its token.
Task<void> expect_quiet(Env& env, Signal& signal) {
  CancelSource stop;
  Task<Result<void>> waiting = wait_for(signal, stop.token());
  co_await turn(env);
  co_await turn(env);
  EXPECT_FALSE(waiting.is_done());
  stop.request();
  const Result<void> ended = co_await waiting;
  EXPECT_EQ(outcome(ended), "cancelled");
}

WORLD_TEST(Signals, WakeWhoWaits) {
  Ends ends = signal_ends(env);
  Task<Result<void>> waiting = wait_for(*ends.waited);
  co_await turn(env);
  EXPECT_FALSE(waiting.is_done());
  ends.raised->raise();
  const Result<void> raised = co_await waiting;
  EXPECT_EQ(outcome(raised), "ok");
  co_await expect_quiet(env, *ends.waited);
}

WORLD_TEST(Signals, RaisedBeforeAreSeen) {
  Ends ends = signal_ends(env);
  ends.raised->raise();
  const Result<void> raised = co_await ends.waited->wait();
  EXPECT_EQ(outcome(raised), "ok");
}

WORLD_TEST(Signals, RaisedOftenAreRaisedOnce) {
  Ends ends = signal_ends(env);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i <= round; ++i) ends.raised->raise();
    const Result<void> settled = co_await task::sleep_for(env, 1_ms);
    EXPECT_EQ(outcome(settled), "ok");
    const Result<void> raised = co_await ends.waited->wait();
    EXPECT_EQ(outcome(raised), "ok");
    co_await expect_quiet(env, *ends.waited);
  }
}

WORLD_TEST(Signals, OutliveTheirRaiser) {
  Ends ends = signal_ends(env);
  ends.raised->raise();
  ends.raised.reset();
  const Result<void> raised = co_await ends.waited->wait();
  EXPECT_EQ(outcome(raised), "ok");
}

WORLD_TEST(Signals, ThatNobodyTakesHoldNobodyUp) {
  const Descriptor full = scene.full_signal(env);
  const auto first = must(shared(env).open_signal(full));
  const auto second = must(shared(env).open_signal(full));
  for (int i = 0; i < 3; ++i) {
    first->raise();
    second->raise();
    co_await turn(env);
  }
  const Result<void> raised = co_await first->wait();
  EXPECT_EQ(outcome(raised), "ok");
  // And again, to go with it raised and full.
  const Descriptor other = scene.full_signal(env);
  must(shared(env).open_signal(other))->raise();
  const auto kept = must(shared(env).open_signal(other));
  kept->raise();
  co_await turn(env);
}

WORLD_TEST(Signals, CrossCores) {
  const Descriptor there = must(shared(env).make_signal());
  const Descriptor back = must(shared(env).make_signal());
  constexpr int kRounds = 200;
  auto answering = env::call_on(env, CoreId(1), [&](Env& e) -> Task<int> {
    return [](Env& here, const Descriptor& in, const Descriptor& out) -> Task<int> {
      const auto waited = must(shared(here).open_signal(in));
      const auto raised = must(shared(here).open_signal(out));
      int count = 0;
      for (; count < kRounds; ++count) {
        const Result<void> got = co_await waited->wait();
        if (!got) break;
        raised->raise();
      }
      co_return count;
    }(e, there, back);
  });
  const auto raised = must(shared(env).open_signal(there));
  const auto waited = must(shared(env).open_signal(back));
  for (int i = 0; i < kRounds; ++i) {
    raised->raise();
    const Result<void> got = co_await waited->wait();
    EXPECT_EQ(outcome(got), "ok");
  }
  const int count = co_await answering;
  EXPECT_EQ(count, kRounds);
}

WORLD_TEST(Signals, AreNotLostToACancelledWait) {
  Ends ends = signal_ends(env);
  for (int round = 0; round < 50; ++round) {
    CancelSource stop;
    Task<Result<void>> waiting = wait_for(*ends.waited, stop.token());
    co_await hesitate(env);
    ends.raised->raise();
    co_await hesitate(env);
    stop.request();
    const Result<void> first = co_await waiting;
    if (first) continue;
    EXPECT_EQ(outcome(first), "cancelled");
    const Result<void> second = co_await ends.waited->wait();
    EXPECT_EQ(outcome(second), "ok");
  }
  co_await expect_quiet(env, *ends.waited);
}

WORLD_TEST(Signals, RequestedTokensStartNothing) {
  Ends ends = signal_ends(env);
  ends.raised->raise();
  CancelSource stop;
  stop.request();
  const Result<void> none = co_await ends.waited->wait(stop.token());
  EXPECT_EQ(outcome(none), "cancelled");
  const Result<void> raised = co_await ends.waited->wait();
  EXPECT_EQ(outcome(raised), "ok");
}

}  // namespace
}  // namespace cairn::conformance
