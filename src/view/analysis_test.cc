// SPDX-License-Identifier: Apache-2.0
#include "view/analysis.h"

#include <gtest/gtest.h>

#include <set>

#include "view/view_testing.h"

namespace cairn::view {
namespace {

std::set<std::string> victims(const View& view, bool is_direct) {
  std::set<std::string> names;
  for (const Victim& victim : find_bottlenecks(view).victims) {
    if (victim.is_direct == is_direct) names.insert(view.flows[victim.flow].volume);
  }
  return names;
}

// Drive 2 is slow. vol1 and vol2 use it, by ports 0 and 1; vol3 shares port 0 only.
TestView slow_drive() {
  TestView test;
  test.add("host1", "vol1", 0)
      .streams.push_back(
          {.drive = 2, .type = IoType::kWrite, .bytes = 131072, .every = 1_ms, .rtt = 8_ms});
  test.add("host2", "vol2", 1).streams.push_back({.drive = 2, .every = 5_ms, .rtt = 6_ms});
  test.add("host3", "vol3", 0).streams.push_back({.drive = 1});
  return test;
}

TEST(Bottlenecks, ASlowDriveYieldsExactlyItsVictims) {
  TestView test = slow_drive();
  test.run(1_s);
  const View view = test.controller->view(test.now);
  const Bottlenecks found = find_bottlenecks(view);
  EXPECT_EQ(found.congested,
            (std::vector<ComponentId>{{BoxId(0), Kind::kIoPipe, 2}, {BoxId(0), Kind::kDrive, 2}}));
  EXPECT_EQ(victims(view, true), (std::set<std::string>{"vol1", "vol2"}));
  EXPECT_EQ(victims(view, false), (std::set<std::string>{"vol3"}));
  for (const Victim& victim : found.victims) {
    EXPECT_EQ(victim.because, drive_id(2));
    EXPECT_EQ(victim.suffers, view.flows[victim.flow].volume != "vol3");
  }
}

TEST(Bottlenecks, WhoSharesNothingWithItIsNoVictim) {
  TestView test = slow_drive();
  test.clients.pop_front();
  test.run(1_s);
  // vol2 alone is slow now, by port 1.
  const View view = test.controller->view(test.now);
  EXPECT_EQ(victims(view, true), std::set<std::string>{"vol2"});
  EXPECT_TRUE(victims(view, false).empty());
}

TEST(Bottlenecks, ThereAreNoneWhereRequestsAreQuick) {
  TestView test;
  test.add("host1", "vol1").streams.push_back({.every = 200_us});
  test.run(1_s);
  const Bottlenecks found = find_bottlenecks(test.controller->view(test.now));
  EXPECT_TRUE(found.congested.empty());
  EXPECT_TRUE(found.victims.empty());
}

TEST(Bottlenecks, AFullNetPipeHasItsOwnVictims) {
  TestView test;
  TestClient& client = test.add("host1", "vol1", 0);
  for (uint16_t drive = 0; drive < 4; ++drive) {
    client.streams.push_back({.drive = drive, .bytes = 131072, .every = 550_us, .rtt = 3_ms});
  }
  test.add("host2", "vol2", 1).streams.push_back({.drive = 1});
  test.run(1_s);
  const View view = test.controller->view(test.now);
  EXPECT_EQ(find_bottlenecks(view).congested,
            (std::vector<ComponentId>{{BoxId(0), Kind::kNetPipe, 0}}));
  EXPECT_EQ(victims(view, true), std::set<std::string>{"vol1"});
}

TEST(Why, NamesTheDriveAndWhoSharesIt) {
  TestView test;
  TestClient& victim = test.add("host1", "vol1");
  victim.streams.push_back({.drive = 0, .every = 1_ms, .rtt = 100_us});
  victim.streams.push_back({.drive = 2, .every = 10_ms, .rtt = 7_ms});
  TestClient& noisy = test.add("host3", "vol3");
  noisy.streams.push_back(
      {.drive = 2, .type = IoType::kWrite, .bytes = 131072, .every = 1_ms, .rtt = 9_ms});
  test.run(1_s);
  const View view = test.controller->view(test.now);
  const Why why = explain(view, "vol1");
  ASSERT_EQ(why.causes.size(), 1u);
  EXPECT_EQ(why.causes[0].component, drive_id(2));
  EXPECT_EQ(why.causes[0].permille, 1000u);
  EXPECT_EQ(text(view, why),
            "vol1: 99% of 220 requests in the last 200 ms took 7.34 ms or less.\n"
            "100% of its p99 is drive b1/d2 (congested), shared with vol3's 128 KiB writes.\n");
}

TEST(Why, SplitsTheTimeOfTheSlowestRequests) {
  TestView test;
  TestClient& client = test.add("host1", "vol1");
  client.streams.push_back({.drive = 1, .every = 2_ms, .rtt = 7_ms});
  client.streams.push_back({.drive = 2, .every = 3_ms, .rtt = 7_ms});
  test.run(1200_ms);
  const View view = test.controller->view(test.now);
  const Why why = explain(view, "vol1");
  ASSERT_EQ(why.causes.size(), 2u);
  EXPECT_EQ(why.causes[0].component, drive_id(1));
  EXPECT_NEAR(why.causes[0].permille, 600, 10);
  EXPECT_NEAR(why.causes[1].permille, 400, 10);
  EXPECT_EQ(why.causes[0].permille + why.causes[1].permille, 1000u);
  EXPECT_NE(text(view, why).find("which nobody else uses"), std::string::npos);
}

TEST(Why, SaysThatThereIsNothingToSay) {
  TestView test;
  const View view = test.controller->view(test.now);
  EXPECT_EQ(
      text(view, explain(view, "vol9")),
      "vol9: no requests in the last 200 ms. Either it is idle, or no agent reports for it.\n");
}

}  // namespace
}  // namespace cairn::view
