// SPDX-License-Identifier: Apache-2.0
#include "model/net/fluid_network.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "model/net/testing.h"

namespace cairn::net {
namespace {

Parameters fluid() {
  Parameters p;
  p.mode = Mode::kFluid;
  return p;
}

TEST(FairShares, LongPathsGetWhatShortOnesLeave) {
  // Bertsekas and Gallager's example: one flow over three links, others over one each.
  FairShares shares({1, 1, 2});
  const std::vector<uint32_t> all = {0, 1, 2};
  const std::vector<uint32_t> first = {0};
  const std::vector<uint32_t> second = {1};
  const std::vector<uint32_t> third = {2};
  const std::vector<std::span<const uint32_t>> paths = {all, first, second, second, third};
  std::vector<double> rates;
  shares.fill(paths, {}, rates);
  EXPECT_NEAR(rates[0], 1.0 / 3, 1e-12);
  EXPECT_NEAR(rates[1], 2.0 / 3, 1e-12);
  EXPECT_NEAR(rates[2], 1.0 / 3, 1e-12);
  EXPECT_NEAR(rates[3], 1.0 / 3, 1e-12);
  EXPECT_NEAR(rates[4], 5.0 / 3, 1e-12);
}

TEST(FluidNetwork, OneFlowTakesAsLongAsItsPackets) {
  for (const uint64_t bytes : {1ULL, 999ULL, 1000ULL, 123'456ULL, 1'000'000ULL}) {
    Picos finished[2];
    for (const Mode mode : {Mode::kPacket, Mode::kFluid}) {
      Parameters p;
      p.mode = mode;
      Network network(star(2), p);
      network.start({.source = 0, .destination = 1, .bytes = bytes});
      Completions done;
      network.advance(kNever, done);
      finished[static_cast<int>(mode)] = done.last();
    }
    EXPECT_NEAR(static_cast<double>(finished[0]), static_cast<double>(finished[1]), 1000.0)
        << bytes;
  }
}

// Flows that stay get their fair shares from PAUSE alone: one switch, different fan-ins.
TEST(FluidNetwork, PacketsReachMaxMinSharesWithinOnePercent) {
  Parameters p;
  p.control = Control::kNone;
  p.ecn.enabled = false;
  // Senders 2 to 4 to host 0; sender 4 also to host 1, from where nobody else wants anything.
  const auto run = [&](Mode mode) {
    p.mode = mode;
    Network network(star(5), p);
    network.start({.tag = 2, .source = 2, .destination = 0, .bytes = 10'000'000});
    network.start({.tag = 3, .source = 3, .destination = 0, .bytes = 10'000'000});
    network.start({.tag = 4, .source = 4, .destination = 1, .bytes = 30'000'000});
    Completions done;
    network.advance(kNever, done);
    return done;
  };
  const Completions packets = run(Mode::kPacket);
  const Completions rates = run(Mode::kFluid);
  for (const uint64_t tag : {2, 3, 4}) {
    EXPECT_NEAR(static_cast<double>(packets.of(tag)), static_cast<double>(rates.of(tag)),
                0.01 * static_cast<double>(rates.of(tag)));
  }
}

TEST(FluidNetwork, LongFlowsEndWithinAFewPercentOfPackets) {
  const auto run = [&](Mode mode) {
    Parameters p;
    p.mode = mode;
    p.control = Control::kNone;
    p.ecn.enabled = false;
    Network network(star(9), p);
    Rng rng(4);
    for (uint32_t i = 1; i < 9; ++i) {
      network.start({.tag = i,
                     .source = i,
                     .destination = i <= 4 ? 0U : (i == 8 ? 1U : i + 1),
                     .bytes = rng.between(4'000'000, 8'000'000),
                     .start = static_cast<Picos>(rng.below(1000)) * kMicrosecond});
    }
    Completions done;
    network.advance(kNever, done);
    return done;
  };
  const Completions packets = run(Mode::kPacket);
  const Completions rates = run(Mode::kFluid);
  ASSERT_EQ(packets.all.size(), rates.all.size());
  for (uint64_t tag = 1; tag < 9; ++tag) {
    EXPECT_NEAR(static_cast<double>(packets.of(tag)), static_cast<double>(rates.of(tag)),
                0.04 * static_cast<double>(rates.of(tag)))
        << tag;
  }
}

TEST(FluidNetwork, ManyFlowsCompleteOnceAndInOrder) {
  Network network(clos({}), fluid());
  Rng rng(6);
  for (uint64_t tag = 0; tag < 2000; ++tag) {
    const auto from = static_cast<uint32_t>(rng.below(256));
    network.start({.tag = tag,
                   .source = from,
                   .destination = static_cast<uint32_t>((from + 1 + rng.below(255)) % 256),
                   .bytes = rng.between(1, 200'000),
                   .start = static_cast<Picos>(rng.below(1000)) * kMicrosecond});
  }
  Completions done;
  network.advance(kNever, done);
  EXPECT_EQ(done.times.size(), 2000U);
  EXPECT_EQ(network.unfinished(), 0U);
  for (size_t i = 1; i < done.all.size(); ++i) {
    EXPECT_GE(done.all[i].finished, done.all[i - 1].finished);
    EXPECT_GT(done.all[i].finished, done.all[i].received);
  }
}

}  // namespace
}  // namespace cairn::net
