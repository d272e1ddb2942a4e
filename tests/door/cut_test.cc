// SPDX-License-Identifier: Apache-2.0
// A whole conversation cut at each of its bytes in turn, in both directions. Where the wire only
// stutters nothing is lost or mistaken; where it breaks the server serves the next client, and what
// was acknowledged is there.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "door/door.h"
#include "task/sync.h"
#include "world/sim/cluster.h"

namespace cairn::door_tests {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kStep = 31;
#else
constexpr uint64_t kStep = 1;
#endif

struct Scenery {
  bool structured = true;
  bool acknowledged = false;  // the write
  bool completed = false;     // the whole conversation
  bool served_next = false;
  bool over = false;
};

Task<void> serve(env::Env& env, env::Address at) {
  Door door(env);
  co_await door.open(at);
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await door.close();
}

const Content kData = pattern(900, 4);

Task<Result<void>> converse(NbdClient& client, env::Address at, Scenery& scenery) {
  const Result<Told> told = co_await client.arrive(at, "small", scenery.structured);
  if (!told) co_return fail(told.error());
  Result<Answer> answer = co_await client.call({Command::kWrite, 100, 900, 0}, kData);
  if (!answer) co_return fail(answer.error());
  scenery.acknowledged = answer->error == 0;
  answer = co_await client.call({Command::kRead, 0, 1100, 0});
  if (!answer) co_return fail(answer.error());
  EXPECT_TRUE(std::equal(kData.begin(), kData.end(), answer->data.begin() + 100));
  answer = co_await client.call({Command::kRead, 1 << 20, 1, 0});
  if (!answer) co_return fail(answer.error());
  EXPECT_EQ(answer->error, 22u);
  answer = co_await client.call({Command::kFlush, 0, 0, 0});
  if (!answer) co_return fail(answer.error());
  const Result<uint64_t> bye = co_await client.ask({Command::kDisconnect, 0, 0, 0});
  if (!bye) co_return fail(bye.error());
  scenery.completed = true;
  co_return Result<void>{};
}

Task<void> visit(env::Env& env, env::Address at, Scenery& scenery) {
  NbdClient first(env);
  const Result<void> talked = co_await converse(first, at, scenery);
  if (!talked) {
    EXPECT_NE(talked.error().code(), Errc::kCorrupt) << talked.error().what();
  }
  NbdClient next(env);
  const Result<Told> told = co_await next.arrive(at, "small", true);
  EXPECT_TRUE(told.has_value());
  const Result<Answer> read = co_await next.call({Command::kRead, 100, 900, 0});
  EXPECT_TRUE(read.has_value());
  if (read && scenery.acknowledged) {
    EXPECT_TRUE(read->data == kData);
  }
  scenery.served_next = told && read;
  scenery.over = true;
}

// False: the conversation was too short to be cut there.
bool converse_cut_at(const sim::WireCut& cut, bool structured) {
  Scenery scenery{.structured = structured};
  sim::ClusterOptions options;
  options.network.jitter_max = 0_s;
  options.network.cut = cut;
  options.trace_capacity = 16;
  sim::Cluster cluster(options);
  sim::Node& server = cluster.node("server");
  const env::Address at = server.address(10809);
  server.start([at](env::Env& env) { return serve(env, at); });
  cluster.run_for(1_ms);
  cluster.node("client").start([&](env::Env& env) { return visit(env, at, scenery); });
  EXPECT_TRUE(cluster.run_until([&] { return scenery.over; }, 1000_s));
  EXPECT_TRUE(scenery.served_next);
  const bool was_cut = cluster.was_cut();
  if (!cut.breaks) {
    EXPECT_TRUE(scenery.completed);
  }
  server.stop();
  EXPECT_TRUE(cluster.run_until([&] { return !server.is_running(); }, 100_s));
  return was_cut;
}

class NbdCut : public testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(NbdCut, AtEveryByteHarmsNobodyElse) {
  const auto [to_server, breaks, structured] = GetParam();
  uint64_t position = 1;
  while (!HasFailure() &&
         converse_cut_at(
             {.connection = 0, .to_server = to_server, .position = position, .breaks = breaks},
             structured)) {
    position += kStep;
  }
  EXPECT_FALSE(HasFailure()) << "cut at byte " << position;
  EXPECT_GT(position, 1000u) << "the conversation was never so short";
}

INSTANTIATE_TEST_SUITE_P(Ways, NbdCut,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace cairn::door_tests
