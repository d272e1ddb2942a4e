// SPDX-License-Identifier: Apache-2.0
// Auction and clients when either dies, and when the network between them loses, repeats and
// delays: no slice is lost for long, and none is used twice.
#include <gtest/gtest.h>

#include "share/auction_testing.h"

namespace cairn::share {
namespace {

constexpr uint64_t kRate = 400 * kMB;
constexpr uint64_t kPort = 2000 * kMB;
constexpr auto kEpochBytes = static_cast<int64_t>(kRate / 20);

Market market_of(uint64_t seed, const std::vector<uint32_t>& weights) {
  Market market(seed, {kRate}, {kPort});
  for (size_t i = 0; i < weights.size(); ++i) {
    market.add(
        {.volume = "vol" + std::to_string(i), .terms = {.weight = weights[i]}, .depth = 600});
  }
  return market;
}

TEST(AuctionFaults, WithoutAnAuctionClientsGoOnWithTheirLastShare) {
  Market market = market_of(1, {1, 2, 4, 1});
  market.run(1_s);
  market.stop_auction();
  market.run(static_cast<int64_t>(kIdleEpochs) * kEpoch);
  market.mark();
  market.run(200_ms);
  EXPECT_NEAR(market.all_per_s() / static_cast<double>(kRate), 1, 0.1);
  EXPECT_NEAR(market.bytes_per_s(2) / 200e6, 1, 0.15);
  EXPECT_NEAR(market.bytes_per_s(0) / 50e6, 1, 0.3);
}

TEST(AuctionFaults, WithoutAnAuctionSharesBecomeEqualAndTheirSumIsWhatItWas) {
  Market market = market_of(1, {1, 2, 4, 1});
  market.run(1_s);
  market.stop_auction();
  market.run(500_ms);
  const size_t alone_since = market.steps();
  market.run(10_s);
  market.mark();
  market.run(50_s);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(market.bytes_per_s(i) / 100e6, 1, 0.05) << i;
  EXPECT_NEAR(market.all_per_s() / static_cast<double>(kRate), 1, 0.05);
  EXPECT_LE(market.max_beyond(0, 500_ms, alone_since), 2 * kEpochBytes);
}

TEST(AuctionFaults, AnAuctionThatComesBackBringsNoBurst) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Market market = market_of(seed, {1, 1, 2});
    market.run(1_s);
    market.stop_auction();
    market.run(1_s + Duration{static_cast<int64_t>(seed) * 7'500'000});
    const size_t before = market.steps();
    market.start_auction();
    market.run(300_ms);
    // As without faults: an epoch that begins early, what was unused before, and what is lent.
    EXPECT_LE(market.max_beyond(0, 100_ms, before), 2 * kEpochBytes) << seed;
    market.mark();
    market.run(1_s);
    EXPECT_NEAR(market.bytes_per_s(2) / 200e6, 1, 0.1) << seed;
    EXPECT_NEAR(market.all_per_s() / static_cast<double>(kRate), 1, 0.03) << seed;
  }
}

TEST(AuctionFaults, AnAuctionThatStartsAgainAtOnceBringsNoBurst) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Market market = market_of(seed, {1, 1, 1, 1});
    market.run(1_s + Duration{static_cast<int64_t>(seed) * 2'500'000});
    const size_t before = market.steps();
    market.start_auction();
    market.run(500_ms);
    EXPECT_LE(market.max_beyond(0, 100_ms, before), 2 * kEpochBytes) << seed;
    market.mark();
    market.run(1_s);
    EXPECT_NEAR(market.all_per_s() / static_cast<double>(kRate), 1, 0.03) << seed;
  }
}

TEST(AuctionFaults, WhatAClientThatDiedHadIsGrantedToOthersInTheNextEpochs) {
  Market market = market_of(1, {1, 1, 1, 1});
  market.run(1_s);
  for (size_t i = 1; i < 4; ++i) {
    market.restart(i);
    market.clients[i].buyer.wants = false;
  }
  market.run(static_cast<int64_t>(kIdleEpochs + 1) * kEpoch);
  market.mark();
  market.run(1_s);
  EXPECT_NEAR(market.bytes_per_s(0) / static_cast<double>(kRate), 1, 0.05);
}

// Everything at once, over seeds; then a healed phase.
TEST(AuctionFaults, NoSliceIsLostOrUsedTwiceOverCrashesOfEither) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    Market market = market_of(seed, {1, 1, 1, 1});
    market.loses = 0.1;
    market.repeats = 0.1;
    market.delays = 3_ms;
    market.run(500_ms);
    for (int i = 0; i < 20; ++i) {
      market.run(Duration{static_cast<int64_t>(rng.between(5, 150)) * 1'000'000});
      switch (rng.below(4)) {
        case 0:
          market.restart(rng.below(4));
          break;
        case 1:
          market.stop_auction();
          break;
        default:
          if (!market.auction || rng.bernoulli(0.3)) market.start_auction();
          break;
      }
    }
    // A window of 500 ms holds an epoch more than it is long, what was unused before it, and what
    // was lent; each client's largest request; and each time somebody started anew a part more.
    EXPECT_LE(market.max_beyond(0, 500_ms), 4 * kEpochBytes) << seed;
    market.loses = market.repeats = 0;
    market.delays = {};
    if (!market.auction) market.start_auction();
    market.run(500_ms);
    const size_t healed = market.steps();
    market.mark();
    market.run(1_s);
    EXPECT_NEAR(market.all_per_s() / static_cast<double>(kRate), 1, 0.03) << seed;
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(market.bytes_per_s(i) / 100e6, 1, 0.05) << seed;
    EXPECT_LE(market.max_beyond(0, 500_ms, healed), 2 * kEpochBytes) << seed;
  }
}

}  // namespace
}  // namespace cairn::share
