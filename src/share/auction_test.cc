// SPDX-License-Identifier: Apache-2.0
#include "share/auction.h"

#include <gtest/gtest.h>

#include "share/auction_testing.h"

namespace cairn::share {
namespace {

constexpr uint64_t kPort = 2000 * kMB;

// Buyers of all kinds of requests.
Buyer buyer_of(Rng& rng, const std::string& volume) {
  Buyer buyer{.volume = volume, .terms = {}};
  buyer.bytes = static_cast<uint32_t>(4096 << rng.below(7));
  buyer.type = rng.bernoulli(0.4) ? IoType::kWrite : IoType::kRead;
  // Enough to keep a share busy, and some with far more.
  buyer.depth = (4U << 20) / buyer.bytes * rng.between(1, 4);
  return buyer;
}

TEST(Auction, SharesAreEqualWhateverTheRequestsAreLike) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Market market(seed, {500 * kMB}, {kPort});
    for (int i = 0; i < 4; ++i) market.add(buyer_of(rng, "vol" + std::to_string(i)));
    market.run(1_s);
    market.mark();
    market.run(2_s);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(market.weighted_per_s(i) / (500e6 / 4), 1, 0.05) << seed << " " << i;
    }
  }
}

TEST(Auction, SharesFollowWeightsOfOneTwoAndFour) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Market market(seed, {700 * kMB}, {kPort});
    for (uint32_t i = 0; i < 3; ++i) {
      Buyer buyer = buyer_of(rng, "vol" + std::to_string(i));
      buyer.terms.weight = 1U << i;
      buyer.depth *= 2;
      market.add(buyer);
    }
    market.run(1_s);
    market.mark();
    market.run(2_s);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(market.weighted_per_s(i) / (100e6 * (1 << i)), 1, 0.1) << seed << " " << i;
    }
  }
}

TEST(Auction, WeightsThatChangeInUseChangeTheSharesWithinFourEpochs) {
  Market market(1, {600 * kMB}, {kPort});
  market.add({.volume = "vol0", .terms = {}});
  market.add({.volume = "vol1", .terms = {}});
  market.clients[0].buyer.depth = market.clients[1].buyer.depth = 400;
  market.run(1_s);
  ASSERT_TRUE(market.auction->change("vol1", {.weight = 5}));
  market.run(4 * kEpoch);
  market.mark();
  market.run(1_s);
  EXPECT_NEAR(market.bytes_per_s(0) / 100e6, 1, 0.1);
  EXPECT_NEAR(market.bytes_per_s(1) / 500e6, 1, 0.1);
}

TEST(Auction, AFloorHoldsAgainstFourNoisyNeighbours) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    Market market(seed, {300 * kMB}, {kPort});
    Buyer quiet{.volume = "quiet", .terms = {.floor = 100 * kMB}, .bytes = 16384, .depth = 512};
    market.add(quiet);
    for (int i = 0; i < 4; ++i) {
      Buyer noisy = buyer_of(rng, "noisy" + std::to_string(i));
      noisy.depth *= 4;
      market.add(noisy);
    }
    market.run(1_s);
    market.mark();
    market.run(2_s);
    EXPECT_NEAR(market.bytes_per_s(0) / 100e6, 1, 0.1) << seed;
    EXPECT_NEAR(market.all_per_s() / 300e6, 1, 0.03) << seed;
  }
}

// What it does not need of its floor others have.
// Neighbours that ask early in each epoch once were lent what those that ask late had to pay back.
TEST(Auction, ABesiegedFloorLeavesNoNeighbourWithoutItsPart) {
  Market market(31, {100 * kMB}, {1000 * kMB});
  market.add({.volume = "floor", .terms = {.floor = 60 * kMB}, .depth = 32});
  for (int i = 0; i < 4; ++i) market.add({.volume = "noisy" + std::to_string(i), .depth = 64});
  market.run(2_s);
  market.mark();
  market.run(1_s);
  EXPECT_NEAR(market.bytes_per_s(0), 60.0 * kMB, 6.0 * kMB);
  for (size_t i = 1; i < 5; ++i) EXPECT_GT(market.bytes_per_s(i), 8.0 * kMB) << i;
}

TEST(Auction, AFloorThatIsNotUsedCostsNothing) {
  Market market(1, {300 * kMB}, {kPort});
  Buyer quiet{.volume = "quiet", .terms = {.floor = 250 * kMB}, .wants = false};
  market.add(quiet);
  market.add({.volume = "noisy", .terms = {}, .depth = 300});
  market.run(1_s);
  market.mark();
  market.run(1_s);
  EXPECT_NEAR(market.bytes_per_s(1) / 300e6, 1, 0.03);
}

TEST(Auction, ACapHolds) {
  Market market(1, {300 * kMB}, {kPort});
  market.add({.volume = "vol0", .terms = {.cap = 40 * kMB}, .depth = 300});
  market.add({.volume = "vol1", .terms = {}, .depth = 300});
  market.run(1_s);
  market.mark();
  market.run(2_s);
  EXPECT_NEAR(market.bytes_per_s(0) / 40e6, 1, 0.1);
  EXPECT_NEAR(market.bytes_per_s(1) / 260e6, 1, 0.05);
}

TEST(Auction, ANetPipeThatIsFullWastesNothingOfTheDrive) {
  Market market(1, {400 * kMB}, {50 * kMB, kPort});
  market.add({.volume = "vol0", .terms = {}, .port = 0, .depth = 200});
  market.add({.volume = "vol1", .terms = {}, .port = 1, .depth = 400});
  market.run(1_s);
  market.mark();
  market.run(2_s);
  EXPECT_NEAR(market.bytes_per_s(0) / 50e6, 1, 0.1);
  EXPECT_NEAR(market.bytes_per_s(1) / 350e6, 1, 0.05);
}

TEST(Auction, WhoWantsLittleLeavesTheRestToOthers) {
  Market market(1, {400 * kMB}, {kPort});
  // One request at a time.
  market.add({.volume = "vol0", .terms = {}, .bytes = 4096, .depth = 1});
  market.add({.volume = "vol1", .terms = {}, .depth = 400});
  market.run(1_s);
  market.mark();
  market.run(2_s);
  EXPECT_NEAR(market.all_per_s() / 400e6, 1, 0.03);
}

TEST(Auction, AShareThatIsNotUsedAnyMoreFlowsWithinAnEpoch) {
  Market market(1, {400 * kMB}, {kPort});
  for (int i = 0; i < 4; ++i) {
    market.add({.volume = "vol" + std::to_string(i), .terms = {}, .depth = 400});
  }
  market.run(1_s);
  for (size_t i = 1; i < 4; ++i) market.clients[i].buyer.wants = false;
  market.run(2 * kEpoch);  // what was on its way, and the epoch in which they stop
  market.mark();
  market.run(500_ms);
  EXPECT_NEAR(market.bytes_per_s(0) / 400e6, 1, 0.05);
}

TEST(Auction, WhoWakesUpDoesNotWaitForTheEpochToEnd) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Market market(seed, {400 * kMB}, {kPort});
    market.add({.volume = "sleeper", .terms = {}, .bytes = 4096, .depth = 1, .wants = false});
    for (int i = 0; i < 4; ++i) {
      market.add({.volume = "vol" + std::to_string(i), .terms = {}, .depth = 400});
    }
    market.run(1_s + Duration{static_cast<int64_t>(seed) * 3'000'000});
    EXPECT_EQ(market.clients[0].served, 0u) << seed;
    market.clients[0].buyer.wants = true;
    market.run(1_s);
    EXPECT_GT(market.clients[0].served, 0u) << seed;
    EXPECT_LE(market.clients[0].longest_wait, 5_ms) << seed;
  }
}

TEST(Auction, VolumesOverManyDrivesAndPortsUseAllOfThem) {
  Market market(1, {200 * kMB, 200 * kMB, 200 * kMB, 200 * kMB}, {kPort, kPort});
  for (uint32_t i = 0; i < 4; ++i) {
    market.add({.volume = "vol" + std::to_string(i),
                .terms = {},
                .port = i % 2,
                .drives = {i, (i + 1) % 4},
                .depth = 400});
  }
  market.run(1_s);
  market.mark();
  market.run(2_s);
  EXPECT_NEAR(market.all_per_s() / 800e6, 1, 0.05);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(market.bytes_per_s(i) / 200e6, 1, 0.1) << i;
}

TEST(Auction, AFloorThatCannotBeKeptIsRefusedWithTheReason) {
  Auction auction(1, Time{});
  auction.set_drive(DriveId(0), {.name = "b1/d0", .rate = 1000 * kMB, .guaranteed = 500 * kMB});
  auction.set_drive(DriveId(1), {.name = "b1/d1", .rate = 1000 * kMB, .guaranteed = 500 * kMB});
  auction.set_port(PortId(0), "b1/port0", 1000 * kMB);
  const std::vector<DriveId> one = {DriveId(0)};
  const std::vector<DriveId> two = {DriveId(0), DriveId(1)};
  ASSERT_TRUE(auction.open("vol1", {.floor = 300 * kMB}, Auction::behind(PortId(0), one)));
  const Attempt<TenantId> refused =
      auction.open("vol2", {.floor = 200 * kMB}, Auction::behind(PortId(0), one));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text,
            "The floor of vol2, 200 MB/s, cannot be kept: drive b1/d0 can promise 450 MB/s, of "
            "which 300 MB/s are promised to others. Take a floor that fits, or spread the volume "
            "over more drives.");
  EXPECT_TRUE(auction.open("vol2", {.floor = 200 * kMB}, Auction::behind(PortId(0), two)));
  const Attempt<void> port =
      auction.check("vol3", {.floor = 500 * kMB}, Auction::behind(PortId(0), {DriveId(1)}));
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().text.find("b1/port0 can promise 900 MB/s"), std::string::npos);
  // Its own old floor does not count against a new one.
  EXPECT_TRUE(auction.change("vol1", {.floor = 350 * kMB}));
  EXPECT_FALSE(auction.change("vol1", {.floor = 360 * kMB}));
  EXPECT_FALSE(auction.change("vol9", {}));
  EXPECT_FALSE(auction.check("vol3", {.weight = 0}, Auction::behind(PortId(0), one)));
  EXPECT_FALSE(auction.check("vol3", {.floor = 20, .cap = 10}, Auction::behind(PortId(0), one)));
  EXPECT_FALSE(auction.check("vol3", {}, Auction::behind(PortId(7), one)));
}

TEST(Auction, ARequestThatComesTwiceIsGrantedOnce) {
  Auction auction(1, Time{});
  auction.set_drive(DriveId(0), {.name = "d", .rate = 1000 * kMB, .pipe = 1000 * kMB});
  auction.set_port(PortId(0), "p", 1000 * kMB);
  const Attempt<TenantId> tenant =
      auction.open("vol1", {}, Auction::behind(PortId(0), {DriveId(0)}));
  ASSERT_TRUE(tenant);
  const Time later = Time{} + kEpoch;
  const SliceRequest request{.drive = DriveId(0), .auction = 1, .epoch = 2, .now = 1 << 20};
  const Result<SliceGrant> first = auction.request(*tenant, request, later);
  const Result<SliceGrant> again = auction.request(*tenant, request, later);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->granted, 1U << 20);
  EXPECT_EQ(*again, *first);
  EXPECT_EQ(auction.request(*tenant, {.drive = DriveId(1)}, later).error(), Errc::kNotFound);
  EXPECT_EQ(auction.request(TenantId(9), request, later).error(), Errc::kNotFound);
}

// Numbers without sense, and all that a wire can carry.
TEST(Auction, NonsenseIsGrantedNoMoreThanThereIs) {
  Rng rng(1);
  Auction auction(1, Time{});
  auction.set_drive(DriveId(0), {.name = "d", .rate = 1000 * kMB, .pipe = 1000 * kMB});
  auction.set_port(PortId(0), "p", 1000 * kMB);
  const Attempt<TenantId> tenant = auction.open("vol1", {.weight = 1000, .cap = 100 * kMB},
                                                Auction::behind(PortId(0), {DriveId(0)}));
  ASSERT_TRUE(tenant);
  const auto any = [&] { return rng.bernoulli(0.5) ? rng.next() : rng.below(5); };
  uint64_t granted = 0;
  uint64_t epoch = 0;
  uint64_t all = 0;
  for (Time now{}; now < Time{(2_s).ns}; now = now + 1_ms) {
    const SliceRequest request{.drive = DriveId(0),
                               .auction = any(),
                               .epoch = any(),
                               .has = any(),
                               .before = any(),
                               .spent_before = any(),
                               .now = any(),
                               .next = any(),
                               .in_permille = static_cast<uint32_t>(any()),
                               .out_permille = static_cast<uint32_t>(any())};
    const Result<SliceGrant> grant = auction.request(*tenant, request, now);
    ASSERT_TRUE(grant);
    if (grant->epoch != epoch) all += std::exchange(granted, 0);
    epoch = grant->epoch;
    granted = grant->granted;
  }
  // It may say that its bytes are a tenth of what they cost, and that it used nothing; that is all.
  EXPECT_LE(all, 2 * 1000 * kMB * 2);
  EXPECT_GT(all, 0u);
}

// One that always wants more, beside one that says anything, each millisecond.
TEST(Auction, ALiarLeavesAnHonestTenantItsHalf) {
  constexpr uint64_t kRate = 100 * kMB;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    Auction auction(1, {});
    auction.set_drive(DriveId(0), {.name = "d", .rate = kRate, .pipe = kRate, .guaranteed = kRate});
    auction.set_port(PortId(0), "port", 10 * kRate);
    const auto paths = Auction::behind(PortId(0), {DriveId(0)});
    const TenantId honest = auction.open("honest", {}, paths).value();
    const TenantId liar = auction.open("liar", {}, paths).value();
    Slices slices{DriveId(0)};
    slices.set_waiting(kRate, 0, kRate);
    const auto any = [&]() -> uint64_t {
      const uint64_t bits = rng.next() >> rng.below(64);
      return rng.bernoulli(0.3) ? 0 : bits;
    };
    uint64_t used = 0;
    for (int step = 0; step < 1200; ++step) {
      const Time now = Time{} + step * 1_ms;
      const SliceRequest lie{.drive = DriveId(0),
                             .auction = rng.bernoulli(0.9) ? 1 : any(),
                             .epoch = rng.bernoulli(0.5) ? auction.epoch() : any(),
                             .has = any(),
                             .given_back = any(),
                             .before = rng.bernoulli(0.5) ? auction.epoch() - 1 : any(),
                             .spent_before = any(),
                             .now = any(),
                             .next = any(),
                             .in_permille = static_cast<uint32_t>(any()),
                             .out_permille = static_cast<uint32_t>(any())};
      ASSERT_TRUE(auction.request(liar, lie, now).has_value());
      if (const std::optional<SliceRequest> request = slices.request(now)) {
        slices.granted(auction.request(honest, *request, now).value(), now);
      }
      while (slices.take(65536, now)) {
        slices.done();
        if (step >= 200) used += 65536;
      }
    }
    EXPECT_GT(static_cast<double>(used), 0.45 * kRate) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cairn::share
