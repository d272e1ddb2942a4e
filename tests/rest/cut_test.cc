// SPDX-License-Identifier: Apache-2.0
// A conversation with the server cut at each of its bytes in turn, in both directions. Whether the
// wire stutters or breaks there, every request succeeds and the blocks are right.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "rest/scene.h"

namespace cairn::rest {
namespace {

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint64_t kStep = 31;
#else
constexpr uint64_t kStep = 1;
#endif

// Opening, a part of an object, a whole one, both again with conditions, and back.
task::Task<void> converse(env::Env& env, bool& is_right) {
  std::unique_ptr<drive::Drive> drive =
      co_await must_open(env, "?size=4K&object=1K&block=512&connections=1");
  CO_ASSERT_TRUE(drive != nullptr);
  for (uint8_t value = 1; value < 3; ++value) {
    const std::vector<std::byte> data = filled(value, 1024 + 512);
    const Result<void> written = co_await drive->write(Lba(2), data);
    CO_ASSERT_TRUE(written);
    std::vector<std::byte> back(1024 + 512);
    const Result<void> read = co_await drive->read(Lba(2), back);
    CO_ASSERT_TRUE(read);
    EXPECT_EQ(back, data);
  }
  const Result<void> discarded = co_await drive->discard(Lba(0), 8);
  CO_ASSERT_TRUE(discarded);
  const Result<void> blank = co_await drive->compare(Lba(0), filled(0, 4096));
  CO_ASSERT_TRUE(blank);
  is_right = true;
  co_await drive->close();
}

// False: the conversation was too short to be cut there.
bool converse_cut_at(const sim::WireCut& cut, const ServerHabits& habits) {
  HttpServer server(habits);
  bool is_right = false;
  sim::ClusterOptions options;
  options.network.jitter_max = 0_s;
  options.network.cut = cut;
  options.trace_capacity = 16;
  sim::Cluster cluster(options);
  start_server(cluster, server);
  cluster.run_for(1_ms);
  sim::Node& host = cluster.node("host");
  host.start([&is_right](env::Env& env) { return converse(env, is_right); });
  EXPECT_TRUE(cluster.run_until([&] { return !host.is_running(); }, 1000_s));
  EXPECT_TRUE(is_right);
  // The label, and zeroes in place of objects whose PUT may still come.
  for (const auto& [target, object] : server.objects) {
    if (target == "/v/label") continue;
    EXPECT_TRUE(habits.conditions) << target;
    EXPECT_EQ(object.bytes, std::string(object.bytes.size(), '\0')) << target;
  }
  return cluster.was_cut();
}

class RestCut : public testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(RestCut, AtEveryByteHarmsNothing) {
  const auto [to_server, breaks, conditions] = GetParam();
  const ServerHabits habits{.conditions = conditions, .chunked = !conditions};
  uint64_t position = 1;
  while (!HasFailure() &&
         converse_cut_at(
             {.connection = 0, .to_server = to_server, .position = position, .breaks = breaks},
             habits)) {
    position += kStep;
  }
  EXPECT_FALSE(HasFailure()) << "cut at byte " << position;
  EXPECT_GT(position, 1000u) << "the conversation was never so short";
}

INSTANTIATE_TEST_SUITE_P(Ways, RestCut,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace cairn::rest
