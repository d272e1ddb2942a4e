// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/flow.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/sim_test.h"

namespace cairn::kv::chain {
namespace {

using ring::MemberId;
using task::Task;

constexpr uint32_t kCost = 3;

// What a node says, and how long it takes.
struct FakeNode {
  uint32_t says = 100;
  Duration time = 1_ms;
  uint64_t asked = 0;
  uint32_t at_once = 0;
  uint32_t at_once_max = 0;
};
using FakeNodes = std::array<FakeNode, 3>;

Flow::Wanted wanted(std::vector<MemberId> nodes, uint32_t cost = kCost,
                    Flow::Kind kind = Flow::Kind::kRead) {
  return {.kind = kind, .cost = cost, .nodes = std::move(nodes), .preferred = {}};
}
std::vector<MemberId> all_of_them() { return {MemberId(0), MemberId(1), MemberId(2)}; }

Task<void> ask_until(env::Env& env, Flow& flow, FakeNodes& nodes, Time end) {
  while (env.now() < end) {
    Result<Flow::Passage> passage = co_await flow.take(wanted(all_of_them()), {});
    EXPECT_TRUE(passage.has_value());
    FakeNode& node = nodes[passage->member().value()];
    ++node.asked;
    node.at_once_max = std::max(node.at_once_max, ++node.at_once);
    EXPECT_TRUE((co_await task::sleep_for(env, node.time)).has_value());
    --node.at_once;
    passage->answered(node.says);
  }
}

Task<void> ask_many(env::Env& env, Flow& flow, FakeNodes& nodes, int at_once) {
  std::vector<Task<void>> all;
  const Time end = env.now() + 2_s;
  for (int i = 0; i < at_once; ++i) all.push_back(ask_until(env, flow, nodes, end));
  co_await task::when_all(std::move(all));
}

SIM_TEST(Flow, WhatIsAskedFirstGoesToAnyAndBringsItsTokens) {
  Flow flow(env, true);
  Result<Flow::Passage> first = co_await flow.take(wanted({MemberId(1)}), {});
  EXPECT_TRUE(first.has_value());
  EXPECT_EQ(flow.tokens(MemberId(1)), 0u);
  first->answered(7);
  EXPECT_EQ(flow.tokens(MemberId(1)), 7u);
  // Two of three each, and then none without a reply.
  Result<Flow::Passage> second = co_await flow.take(wanted({MemberId(1)}), {});
  Result<Flow::Passage> third = co_await flow.take(wanted({MemberId(1)}), {});
  EXPECT_EQ(flow.tokens(MemberId(1)), 1u);
  Task<Result<Flow::Passage>> fourth = flow.take(wanted({MemberId(1)}), {});
  EXPECT_EQ(flow.waiting(), 1u);
  second->answered(0);
  EXPECT_EQ(flow.waiting(), 1u);
  third->answered(0);
  // Nothing of ours is there any more.
  Result<Flow::Passage> last = co_await fourth;
  EXPECT_TRUE(last.has_value());
  last->answered(0);
}

SIM_TEST(Flow, ANodeThatSaysItHasNothingIsAskedOneThingAtATime) {
  Flow flow(env, true);
  FakeNodes nodes;
  nodes[0].says = 0;
  co_await ask_many(env, flow, nodes, 40);
  EXPECT_EQ(nodes[0].at_once_max, 1u);
  EXPECT_GT(nodes[0].asked, 0u);
  EXPECT_GT(nodes[1].asked, 20 * nodes[0].asked);
}

SIM_TEST(Flow, ANodeThatBoastsHarmsItselfAlone) {
  FakeNodes honest;
  Flow without(env, true);
  co_await ask_many(env, without, honest, 48);
  FakeNodes nodes;
  nodes[0] = {.says = UINT32_MAX, .time = 50_ms};
  Flow flow(env, true);
  co_await ask_many(env, flow, nodes, 48);
  EXPECT_LE(nodes[0].at_once_max, kCallsPerHop);
  EXPECT_LT(nodes[0].asked, (nodes[1].asked + nodes[2].asked) / 5) << nodes[1].asked;
  EXPECT_GT(nodes[1].asked + nodes[2].asked, (honest[1].asked + honest[2].asked) / 2);
}

SIM_TEST(Flow, WhoDoesNotAnswerIsPassedOverAndAskedAgainLater) {
  Flow flow(env, true);
  int asked = 0;
  const Time end = env.now() + 1_s;
  while (env.now() < end) {
    Result<Flow::Passage> passage = co_await flow.take(wanted(all_of_them()), {});
    EXPECT_TRUE((co_await task::sleep_for(env, 1_ms)).has_value());
    if (passage->member() == MemberId(2)) {
      ++asked;  // and nothing comes
    } else {
      passage->answered(100);
    }
  }
  EXPECT_GE(asked, 3);
  EXPECT_LE(asked, 8);
}

SIM_TEST(Flow, ALargeRequestIsNotOvertakenForEver) {
  Flow flow(env, true);
  Result<Flow::Passage> first = co_await flow.take(wanted({MemberId(0)}), {});
  first->answered(6);
  Result<Flow::Passage> one = co_await flow.take(wanted({MemberId(0)}), {});
  Result<Flow::Passage> write =
      co_await flow.take(wanted({MemberId(0)}, 8, Flow::Kind::kWrite), {});
  Task<Result<Flow::Passage>> large = flow.take(wanted({MemberId(0)}, 8, Flow::Kind::kWrite), {});
  Task<Result<Flow::Passage>> small = flow.take(wanted({MemberId(0)}), {});
  one->answered(5);
  EXPECT_EQ(flow.waiting(), 2u);
  write->answered(20);
  Result<Flow::Passage> done = co_await large;
  Result<Flow::Passage> after = co_await small;
  EXPECT_TRUE(done.has_value() && after.has_value());
}

SIM_TEST(Flow, TheNodeHereIsAskedWhileItHasTokensHoweverManyThatAre) {
  Flow flow(env, true);
  const Flow::Wanted here{
      .kind = Flow::Kind::kRead, .cost = 1, .nodes = all_of_them(), .preferred = MemberId(1)};
  std::vector<Flow::Passage> under_way;
  for (int i = 0; i < 3; ++i) {
    // Each is heard once, and says that it has more than is believed.
    Result<Flow::Passage> passage =
        co_await flow.take(wanted({MemberId(static_cast<uint64_t>(i))}), {});
    passage->answered(10'000);
  }
  for (uint32_t i = 0; i < kBelievedMax; ++i) {
    Result<Flow::Passage> passage = co_await flow.take(here, {});
    EXPECT_EQ(passage->member(), MemberId(1));
    under_way.push_back(std::move(*passage));
  }
  const Result<Flow::Passage> elsewhere = co_await flow.take(here, {});
  EXPECT_NE(elsewhere->member(), MemberId(1));
}

SIM_TEST(Flow, WhoGivesUpLeavesItsPlaceToOthers) {
  Flow flow(env, true);
  Result<Flow::Passage> first = co_await flow.take(wanted({MemberId(0)}), {});
  task::Deadline soon(env, env.now() + 1_ms);
  Result<Flow::Passage> late = co_await flow.take(wanted({MemberId(0)}), soon.token());
  EXPECT_FALSE(late.has_value());
  EXPECT_EQ(late.error(), Errc::kTimedOut);
  EXPECT_EQ(flow.waiting(), 0u);
  first->answered(100);
  EXPECT_EQ(flow.tokens(MemberId(0)), 100u);
}

}  // namespace
}  // namespace cairn::kv::chain
