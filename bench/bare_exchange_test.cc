// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_exchange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::bench {
namespace {

ExchangeLoad tiny_exchange() {
  return {.seconds = 0.02,
          .warm_up_seconds = 0.005,
          .memory = 1 << 20,
          .server_cpu = -1,
          .client_cpu = -1};
}

class BareExchange : public ::testing::TestWithParam<ExchangeLoad> {};

TEST_P(BareExchange, AnswersEveryRequest) {
  const Result<ExchangeFigures> figures = bare_exchange(GetParam());
  ASSERT_TRUE(figures.has_value()) << figures.error().text();
  EXPECT_GT(figures->per_second, 0);
  EXPECT_GT(figures->client.cpu_us, 0);
  EXPECT_GT(figures->server.system_calls, 0);
}

std::vector<ExchangeLoad> loads() {
  std::vector<ExchangeLoad> all;
  for (const bool writes : {false, true}) {
    for (const bool batches : {false, true}) {
      for (const uint32_t data_size : {4096U, 131072U}) {
        ExchangeLoad load = tiny_exchange();
        load.writes = writes;
        load.batches = batches;
        load.data_size = data_size;
        load.depth = data_size == 4096 ? 128 : 8;
        all.push_back(load);
      }
    }
  }
  return all;
}
std::string name_of(const ::testing::TestParamInfo<ExchangeLoad>& info) {
  return fmt::format("{}{}K{}", info.param.writes ? "Write" : "Read", info.param.data_size / 1024,
                     info.param.batches ? "InBatches" : "OneByOne");
}
INSTANTIATE_TEST_SUITE_P(Loads, BareExchange, ::testing::ValuesIn(loads()), name_of);

TEST(BareExchange, AskingForNoCpuIsRefused) {
  ExchangeLoad load = tiny_exchange();
  load.client_cpu = 100'000;
  EXPECT_EQ(bare_exchange(load).error(), Errc::kInvalid);
}

}  // namespace
}  // namespace cairn::bench
