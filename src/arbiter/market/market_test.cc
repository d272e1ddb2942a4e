// SPDX-License-Identifier: Apache-2.0
#include "arbiter/market/market.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "task/deadline.h"
#include "testing/sim_test.h"
#include "view/analysis.h"
#include "volume/map_entry_format.h"

namespace cairn::arbiter {
namespace {

constexpr uint64_t kMB = 1'000'000;

task::Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time);
}

DriveRecord drive(uint16_t number, std::string uri, std::string box = "") {
  return {.info = {
              .id = MegaVolId(number), .uri = std::move(uri), .box = std::move(box), .extents = 9}};
}

VolumeRecord volume(uint64_t id, std::string name, std::string holder = "") {
  return {.id = VolumeId(id), .name = std::move(name), .extents = 4, .holder = std::move(holder)};
}

// Two boxes: "b1" with two addresses and three drives, and one that has no name.
Pool some_pool() {
  Pool pool;
  pool.record.next_volume = 9;
  EXPECT_TRUE(pool.add(drive(2, "nvme-tcp://10.0.0.1:4420/a?nsid=1", "b1")));
  EXPECT_TRUE(pool.add(drive(3, "nvme-tcp://10.0.0.2:4420/a?nsid=2", "b1")));
  EXPECT_TRUE(pool.add(drive(5, "nvme-tcp://10.0.0.1:4420/a?nsid=3", "b1")));
  EXPECT_TRUE(pool.add(drive(7, "nvme-tcp://10.0.0.9:4420/b")));
  return pool;
}

MarketOptions some_options() {
  return {.drive_bytes_per_s = 400 * kMB, .drive_floor = 100 * kMB, .port_bytes_per_s = 1000 * kMB};
}

TEST(MarketTopology, BoxesHaveTheirNamesOrAddressesAndAPortForEachAddress) {
  const Topology topology = topology_of(some_pool(), some_options());
  ASSERT_EQ(topology.boxes.size(), 2U);
  EXPECT_EQ(topology.boxes[0].name, "b1");
  EXPECT_EQ(topology.boxes[0].ports, 2U);
  EXPECT_EQ(topology.boxes[0].drives.size(), 3U);
  EXPECT_EQ(topology.boxes[0].drives[2].name, "d5");
  EXPECT_EQ(topology.boxes[1].name, "10.0.0.9:4420");
  EXPECT_EQ(topology.spots.at(MegaVolId(3)).port, 1);
  EXPECT_EQ(topology.spots.at(MegaVolId(5)).port, 0);
  EXPECT_EQ(topology.spots.at(MegaVolId(7)).box, view::BoxId(1));
  for (const view::BoxSpec& box : topology.boxes) EXPECT_TRUE(view::check_box(box));
}

TEST(MarketTopology, NamesThatAViewCannotHaveAreMadeSound) {
  Pool pool;
  EXPECT_TRUE(pool.add(drive(1, "nvme-tcp://" + std::string(200, 'x') + "/b")));
  const Topology topology = topology_of(pool, some_options());
  ASSERT_EQ(topology.boxes.size(), 1U);
  EXPECT_TRUE(view::check_box(topology.boxes[0]));
}

SIM_TEST(Market, OnlyTheHolderOfAVolumeTradesForIt) {
  Pool pool = some_pool();
  EXPECT_TRUE(pool.add(volume(1, "v1", "host-1")));
  Market market(env, some_options());
  market.follow(pool);
  EXPECT_EQ(market.join(pool, {.volume = "v1", .client = "host-2"}).error().code(), Errc::kDenied);
  EXPECT_EQ(market.join(pool, {.volume = "v2", .client = "host-1"}).error().code(),
            Errc::kNotFound);
  const auto joined = market.join(pool, {.volume = "v1", .client = "host-1", .trades = true});
  CO_ASSERT_TRUE(joined);
  EXPECT_EQ(joined->places.size(), 4U);
  EXPECT_EQ(joined->places[1].port, 1);
  share::TradeRequest request{.market = joined->market, .ticket = joined->ticket + 1};
  EXPECT_EQ(market.trade(request).error().code(), Errc::kNotFound);
  request.ticket = joined->ticket;
  request.requests.push_back({.drive = joined->places[0].drive, .now = 4096, .next = 4096});
  EXPECT_TRUE(market.trade(request));
  request.requests[0].drive = share::DriveId(77);
  EXPECT_EQ(market.trade(request).error().code(), Errc::kInvalid);
  // Somebody else opens it.
  VolumeRecord taken = volume(1, "v1", "host-2");
  pool.set_record(*pool.volume(VolumeId(1)), taken);
  co_await nap(env, 60_ms);
  market.follow(pool);
  request.requests.clear();
  EXPECT_EQ(market.trade(request).error().code(), Errc::kNotFound);
}

SIM_TEST(Market, BeginsAnewWhenThePoolHasOtherDrives) {
  Pool pool = some_pool();
  Market market(env, some_options());
  EXPECT_EQ(market.controller(), nullptr);
  market.follow(pool);
  CO_ASSERT_TRUE(market.controller() != nullptr);
  const uint64_t first = market.controller()->incarnation();
  co_await nap(env, 60_ms);
  market.follow(pool);
  EXPECT_EQ(market.controller()->incarnation(), first);
  EXPECT_TRUE(pool.add(drive(8, "nvme-tcp://10.0.0.9:4420/c")));
  co_await nap(env, 60_ms);
  market.follow(pool);
  EXPECT_NE(market.controller()->incarnation(), first);
  market.begin_anew();
  EXPECT_EQ(market.controller(), nullptr);
}

SIM_TEST(Market, AFloorIsJudgedBesideThoseOfAllVolumesOpenOrNot) {
  Pool pool = some_pool();
  EXPECT_TRUE(pool.add(volume(1, "v1")));
  pool.add(ShareRecord{.id = VolumeId(1), .terms = {.floor = 300 * kMB}});
  const Market market(env, some_options());
  // Four drives promise 90 MB/s each.
  EXPECT_TRUE(market.judge(pool, "v2", {.floor = 60 * kMB}));
  const Attempt<void> refused = market.judge(pool, "v2", {.floor = 100 * kMB});
  CO_ASSERT_TRUE(!refused);
  EXPECT_NE(refused.error().text.find("drive b1/d2 can promise 90 MB/s, of which 75 MB/s"),
            std::string::npos)
      << refused.error().text;
  // Its own old floor does not count against it.
  EXPECT_TRUE(market.judge(pool, "v1", {.floor = 360 * kMB}));
  EXPECT_FALSE(market.judge(pool, "v1", {.floor = 361 * kMB + 4}));
  EXPECT_TRUE(market.judge(pool, "v2", {.weight = 7}));
  co_return;
}

SIM_TEST(Market, ADriveThatOneVolumeAloneUsesIsNotSharedOut) {
  Pool pool = some_pool();
  EXPECT_TRUE(pool.add(volume(1, "v1", "a")));
  EXPECT_TRUE(pool.add(volume(2, "v2", "b")));
  Market market(env, some_options());
  market.follow(pool);
  const auto one = market.join(pool, {.volume = "v1", .client = "a", .trades = true});
  const auto two = market.join(pool, {.volume = "v2", .client = "b", .trades = true});
  CO_ASSERT_TRUE(one && two);
  const auto ask = [&](const share::JoinReply& who) {
    const share::TradeRequest request{
        .market = who.market,
        .ticket = who.ticket,
        .requests = {{.drive = share::DriveId(2), .now = 100 * kMB, .next = 100 * kMB}}};
    return market.trade(request)->grants[0].granted;
  };
  // The first epoch is for learning.
  co_await nap(env, 110_ms);
  market.follow(pool);
  EXPECT_GT(ask(*one), 1000 * kMB);
  const uint64_t lent = ask(*two);
  EXPECT_GT(lent, 0U);
  EXPECT_LT(lent, 20 * kMB);
  co_await nap(env, 50_ms);
  market.follow(pool);
  // An epoch of the drive is 20 MB.
  EXPECT_LE(ask(*one) + ask(*two), 31 * kMB);
}

// A client of a market that tells the view what it does at drive 2, beginning by beginning anew.
struct Teller {
  Market& market;
  std::string volume;
  share::JoinReply joined;
  uint64_t number = 0;

  Teller(Market& its_market, const Pool& pool, std::string its_volume, bool trades = true)
      : market(its_market), volume(std::move(its_volume)) {
    const auto reply =
        market.join(pool, {.volume = volume, .client = "c-" + volume, .trades = trades});
    EXPECT_TRUE(reply);
    if (reply) joined = *reply;
  }
  Errc attach(const std::string& as, uint64_t ticket, Time now) const {
    const auto done = market.controller()->attach(
        "host-" + volume,
        {.incarnation = 5,
         .sessions = {{.id = view::SessionId(1), .volume = as, .box = "b1", .ticket = ticket}}},
        now);
    return done ? Errc{} : done.error().code();
  }
  // So many bytes were read.
  void tell(uint64_t bytes, Time now) {
    view::ReportRequest batch{.controller = market.controller()->incarnation(),
                              .incarnation = 5,
                              .number = ++number,
                              .sent = now};
    for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, 128_KiB)) {
      batch.vectors.push_back({.session = view::SessionId(1),
                               .bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, 128_KiB)),
                               .rtt = 300_us,
                               .completed = now});
    }
    EXPECT_TRUE(market.controller()->report("host-" + volume, batch, now));
  }
  // It asks for so much; what it got.
  uint64_t trade(uint64_t wants) const {
    const auto reply =
        market.trade({.market = joined.market,
                      .ticket = joined.ticket,
                      .requests = {{.drive = share::DriveId(2), .now = wants, .next = wants}}});
    EXPECT_TRUE(reply);
    return reply ? reply->grants[0].granted : 0;
  }
};

Pool pool_in_use(const std::vector<std::string>& volumes) {
  Pool pool = some_pool();
  for (size_t i = 0; i < volumes.size(); ++i) {
    EXPECT_TRUE(pool.add(volume(i + 1, volumes[i], "c-" + volumes[i])));
  }
  return pool;
}

SIM_TEST(Market, OnlyTheHolderOfAVolumeTellsTheViewOfIt) {
  const Pool pool = pool_in_use({"v1", "v2"});
  Market market(env, some_options());
  market.follow(pool);
  const Teller one(market, pool, "v1");
  // In the name of another volume, whose client joined or did not, and without its ticket.
  EXPECT_EQ(one.attach("v2", one.joined.ticket, env.now()), Errc::kDenied);
  EXPECT_EQ(one.attach("v2", 0, env.now()), Errc::kDenied);
  EXPECT_EQ(one.attach("v1", one.joined.ticket + 1, env.now()), Errc::kDenied);
  EXPECT_EQ(one.attach("v1", one.joined.ticket, env.now()), Errc{});
  co_return;
}

SIM_TEST(Market, WhoDoesNotKeepToItsSlicesIsNamedAndNobodyElse) {
  const Pool pool = pool_in_use({"v1", "v2", "v3", "silent"});
  Market market(env, some_options());
  market.follow(pool);
  Teller honest(market, pool, "v1");
  Teller greedy(market, pool, "v2");
  Teller free(market, pool, "v3", false);
  for (const Teller* each : {&honest, &greedy, &free}) {
    EXPECT_EQ(each->attach(each->volume, each->joined.ticket, env.now()), Errc{});
  }
  for (int epoch = 0; epoch < 60; ++epoch) {
    co_await nap(env, 50_ms);
    market.follow(pool);
    honest.tell(std::min(honest.trade(4 * kMB), 4 * kMB), env.now());
    greedy.tell(std::min(greedy.trade(kMB), kMB) + 5 * kMB, env.now());
    free.tell(2 * kMB, env.now());
    // It takes a second to be sure.
    if (epoch < 14) EXPECT_TRUE(market.controller()->view(env.now()).offenders.empty());
  }
  using Offence = view::Offender::Offence;
  std::map<std::string, Offence> named;
  const view::View seen = market.controller()->view(env.now());
  for (const view::Offender& each : seen.offenders) {
    named[each.volume] = each.offence;
    EXPECT_EQ(each.client, "c-" + each.volume);
  }
  const std::map<std::string, Offence> expected = {{"v2", Offence::kTakesMore},
                                                   {"v3", Offence::kAsksForNothing},
                                                   {"silent", Offence::kTellsNothing}};
  EXPECT_EQ(named, expected);
  // Who suffers is told.
  const std::string why = text(seen, view::explain(seen, "v1"));
  EXPECT_NE(why.find("v2 (client c-v2) does not keep to its share of b1/d2"), std::string::npos)
      << why;
}

}  // namespace
}  // namespace cairn::arbiter
