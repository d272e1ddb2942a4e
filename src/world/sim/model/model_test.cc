// SPDX-License-Identifier: Apache-2.0
#include "world/sim/model/model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>

#include "base/units.h"
#include "env/disk.h"
#include "world/sim/cluster.h"
#include "world/sim/options.h"
#include "world/sim/testing.h"

namespace cairn::sim {
namespace {

TEST(SimpleNetwork, BytesQueueBehindEachOtherAtTheSender) {
  SimpleNetwork network({.latency = 10_us, .latency_loopback = 1_us, .bytes_per_ns = 1.0});
  EXPECT_EQ(network.deliver(Time{0}, 0, 1, 5000), Time{15'000});
  EXPECT_EQ(network.deliver(Time{0}, 0, 2, 5000), Time{20'000}) << "behind the first";
  EXPECT_EQ(network.deliver(Time{0}, 1, 0, 5000), Time{15'000}) << "another sender is free";
  EXPECT_EQ(network.deliver(Time{0}, 0, 0, 5000), Time{1'000});
  EXPECT_EQ(network.deliver(Time{50'000}, 0, 1, 0), Time{60'000});
}

TEST(SimpleDisk, RepeatsItsSeedAndKeepsItsBandwidth) {
  using Kind = env::DiskOp::Kind;
  SimpleDisk one(7);
  SimpleDisk same(7);
  std::set<int64_t> latencies;
  Time last;
  for (int i = 0; i < 100; ++i) {
    const env::DiskOp::Request request{.kind = Kind::kRead, .offset = 0, .length = 1 << 20};
    last = one.start(Time{0}, request, 0).value();
    EXPECT_EQ(last, same.start(Time{0}, request, 0).value());
    latencies.insert(last.ns - (i + 1) * (1 << 19));
  }
  EXPECT_GT(latencies.size(), 50u) << "jitter";
  EXPECT_GE(last.ns, 100 * (1 << 19)) << "100 MiB at 2 bytes per ns";
}

class Counting final : public NetworkModel {
 public:
  explicit Counting(uint64_t& bytes) : bytes_(bytes) {}
  Time deliver(Time now, uint32_t, uint32_t, uint64_t bytes) override {
    bytes_ += bytes;
    return now + 10_ms;
  }

 private:
  uint64_t& bytes_;
};

TEST(Models, TakeThePlaceOfTheSimpleOnes) {
  uint64_t bytes = 0;
  EchoStats stats;
  ClusterOptions options;
  options.network.model = [&](uint64_t) { return std::make_unique<Counting>(bytes); };
  options.network.jitter_max = {};
  Cluster cluster(options);
  cluster.node("s").start(echo_server(7));
  cluster.node("c").start(
      echo_client(cluster.node("s").address(7), {.rounds = 10, .size = 1000}, stats));
  ASSERT_TRUE(cluster.run_until_idle(1_s) || stats.rounds == 10);
  EXPECT_EQ(bytes, 20'000u);
  EXPECT_EQ(cluster.now().ns % (10_ms).ns, 0);
}

}  // namespace
}  // namespace cairn::sim
