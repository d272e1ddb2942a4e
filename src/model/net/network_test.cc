// SPDX-License-Identifier: Apache-2.0
#include "model/net/network.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::net {
namespace {

struct Done final : FlowSink {
  void flow_done(const FlowDone& done) override { all.push_back(done); }
  std::vector<FlowDone> all;
};

// 1000 frames of 838 ns, one more hop, four link delays, and two hops of an acknowledgement.
TEST(Network, OneFlowTakesWhatTheReferenceTakes) {
  Network network(star(2), hpcc_parameters());
  network.start(
      {.tag = 7, .source = 1, .destination = 0, .bytes = 1'000'000, .start = kMillisecond});
  Done done;
  network.advance(kSecond, done);
  ASSERT_EQ(done.all.size(), 1U);
  EXPECT_EQ(done.all[0].tag, 7U);
  EXPECT_EQ(done.all[0].finished - kMillisecond, 842'932 * kNanosecond);
  EXPECT_EQ(done.all[0].received - kMillisecond, 840'838 * kNanosecond);
  EXPECT_EQ(network.unfinished(), 0U);
}

TEST(Network, OneFlowTakesWhatPhysicsSays) {
  Network network(star(2), Parameters{});
  network.start({.source = 0, .destination = 1, .bytes = 1'000'000});
  Done done;
  network.advance(kNever, done);
  ASSERT_EQ(done.all.size(), 1U);
  EXPECT_EQ(done.all[0].finished, 1001 * 838'400 + 4 * kMicrosecond + 2 * 48'000);
}

}  // namespace
}  // namespace cairn::net
