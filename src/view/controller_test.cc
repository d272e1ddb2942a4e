// SPDX-License-Identifier: Apache-2.0
#include "view/controller.h"

#include <gtest/gtest.h>

#include "view/view_testing.h"

namespace cairn::view {
namespace {

constexpr Time at(int64_t ms) { return Time{ms * 1'000'000}; }

AttachRequest one_session(uint64_t incarnation = 5) {
  return {.incarnation = incarnation,
          .sessions = {{.id = SessionId(1), .volume = "vol1", .box = "b1", .port = 0}}};
}
ReportRequest batch(uint64_t number, std::vector<Time> completed, Time sent) {
  ReportRequest request{
      .controller = 1, .incarnation = 5, .number = number, .sent = sent, .vectors = {}};
  for (const Time time : completed) {
    request.vectors.push_back(
        {.session = SessionId(1), .bytes = 4096, .rtt = 100_us, .completed = time});
  }
  return request;
}

struct OneAgent {
  OneAgent() { EXPECT_TRUE(controller.attach("host1", one_session(), at(1000))); }
  uint64_t recency() { return controller.view(at(1000)).find(drive_id(0))->recency; }
  Controller controller{1, {test_box()}};
};

TEST(Controller, ABatchThatComesTwiceIsCountedOnce) {
  OneAgent test;
  const Result<ReportReply> first =
      test.controller.report("host1", batch(1, {at(1000), at(1000)}, at(1000)), at(1000));
  ASSERT_TRUE(first);
  ASSERT_EQ(first->changed.size(), kKinds);
  EXPECT_EQ(first->changed[0].counter, 2u);
  EXPECT_EQ(first->changed[0].own, 2u);
  const Result<ReportReply> again =
      test.controller.report("host1", batch(1, {at(1000), at(1000)}, at(1010)), at(1010));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->changed, first->changed);
  EXPECT_EQ(test.recency(), 2u);
}

TEST(Controller, ABatchOutOfOrderIsRefused) {
  OneAgent test;
  EXPECT_EQ(test.controller.report("host1", batch(2, {}, at(1000)), at(1000)).error(),
            Errc::kInvalid);
  EXPECT_TRUE(test.controller.report("host1", batch(1, {}, at(1000)), at(1000)));
  EXPECT_TRUE(test.controller.report("host1", batch(2, {}, at(1000)), at(1000)));
  EXPECT_EQ(test.controller.report("host1", batch(1, {}, at(1000)), at(1000)).error(),
            Errc::kInvalid);
}

TEST(Controller, ReportsOfStrangersAndOfOlderAgentsAreRefused) {
  OneAgent test;
  EXPECT_EQ(test.controller.report("host2", batch(1, {}, at(1000)), at(1000)).error(),
            Errc::kNotFound);
  EXPECT_TRUE(test.controller.attach("host1", one_session(6), at(1000)));
  EXPECT_EQ(test.controller.report("host1", batch(1, {}, at(1000)), at(1000)).error(),
            Errc::kNotFound);
  ReportRequest other = batch(1, {}, at(1000));
  other.controller = 2;
  EXPECT_EQ(test.controller.report("host1", other, at(1000)).error(), Errc::kNotFound);
}

TEST(Controller, OnlyWhoHasAVolumeOpenTellsOfItsRequests) {
  Controller controller{1, {test_box()}};
  const std::string volume = one_session().sessions[0].volume;
  controller.admit_only({{7, volume}, {8, "another"}});
  // No ticket, that of another volume, one that nobody was given.
  for (const uint64_t ticket : {0, 8, 9}) {
    AttachRequest request = one_session();
    request.sessions[0].ticket = ticket;
    EXPECT_EQ(controller.attach("host1", request, at(1000)).error(), Errc::kDenied) << ticket;
  }
  AttachRequest request = one_session();
  request.sessions[0].ticket = 7;
  ASSERT_TRUE(controller.attach("host1", request, at(1000)));
  EXPECT_EQ(controller.report("host1", batch(1, {at(1000)}, at(1000)), at(1000))->refused, 0U);
  // Somebody else opened it: what the last holder says is of no opening any more.
  controller.admit_only({{10, volume}});
  EXPECT_EQ(controller.report("host1", batch(2, {at(1000)}, at(1000)), at(1000))->refused, 1U);
  EXPECT_EQ(controller.view(at(1000)).find(drive_id(0))->recency, 1U);
}

TEST(Controller, SessionsThatCannotBeAreRefusedAndChangeNothing) {
  OneAgent test;
  AttachRequest request = one_session();
  request.sessions[0].box = "b9";
  EXPECT_EQ(test.controller.attach("host1", request, at(1000)).error(), Errc::kNotFound);
  request = one_session();
  request.sessions[0].port = 2;
  EXPECT_EQ(test.controller.attach("host1", request, at(1000)).error(), Errc::kNotFound);
  request = one_session();
  request.sessions.push_back(request.sessions[0]);
  EXPECT_EQ(test.controller.attach("host1", request, at(1000)).error(), Errc::kInvalid);
  EXPECT_EQ(test.controller.attach("a b", one_session(), at(1000)).error(), Errc::kInvalid);
  EXPECT_TRUE(test.controller.report("host1", batch(1, {at(1000)}, at(1000)), at(1000)));
  EXPECT_EQ(test.recency(), 1u);
}

TEST(Controller, VectorsOfSessionsThatAreNotTheClientsAreRefused) {
  OneAgent test;
  ReportRequest request = batch(1, {at(1000), at(1000)}, at(1000));
  request.vectors[1].session = SessionId(2);
  const Result<ReportReply> reply = test.controller.report("host1", request, at(1000));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->refused, 1u);
  EXPECT_EQ(test.recency(), 1u);
  EXPECT_EQ(test.controller.directory(at(1000))[0].refused, 1u);
}

TEST(Controller, TimesThatNoClockShowsAreRefused) {
  OneAgent test;
  for (const Time time : {Time{INT64_MAX}, Time{INT64_MIN}}) {
    EXPECT_EQ(test.controller.report("host1", batch(1, {}, time), at(1000)).error(),
              Errc::kInvalid);
    EXPECT_EQ(test.recency(), 0u);
  }
  const Result<ReportReply> reply =
      test.controller.report("host1", batch(1, {Time{INT64_MIN}}, at(5)), at(1000));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->refused, 1u);
}

// The agent's clock is a year behind. A batch that the network kept for half a second is late.
TEST(Controller, ABatchThatWasHeldUpIsKnownToBeLateWhateverTheClocks) {
  OneAgent test;
  const Duration year = 365 * 86400 * 1_s;
  const auto theirs = [&](int64_t ms) { return Time{at(ms).ns - year.ns}; };
  const auto report = [&](uint64_t number, int64_t done, int64_t sent, int64_t arrived) {
    const Result<ReportReply> reply =
        test.controller.report("host1", batch(number, {theirs(done)}, theirs(sent)), at(arrived));
    EXPECT_TRUE(reply);
    return reply ? reply->late : 99;
  };
  EXPECT_EQ(report(1, 1000, 1001, 1002), 0u);
  EXPECT_EQ(report(2, 1050, 1100, 1101), 0u);
  EXPECT_EQ(report(3, 1100, 1110, 1610), 1u);
  EXPECT_EQ(report(4, 1600, 1650, 1651), 0u);
}

TEST(Controller, TellsOnceWhenADriveCrossesItsThreshold) {
  TestView test;
  const Result<Controller::WatcherId> watcher =
      test.controller->watch({.watches = {{.drive = drive_id(0), .below = 100}}});
  ASSERT_TRUE(watcher);
  test.run(500_ms);
  EXPECT_FALSE(test.controller->has_events(*watcher));
  TestClient& client = test.add("host1", "vol1");
  client.streams.push_back({.bytes = 131072, .every = 500_us, .rtt = 9_ms});
  test.run(1_s);
  std::vector<Event> events = test.controller->take_events(*watcher, test.now);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].is_below);
  EXPECT_EQ(events[0].crossings, 1u);
  EXPECT_LT(events[0].now.drive->headroom, 100'000'000u);
  test.run(2_s);
  EXPECT_TRUE(test.controller->take_events(*watcher, test.now).empty());
  client.streams.clear();
  test.run(2_s);
  events = test.controller->take_events(*watcher, test.now);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_FALSE(events[0].is_below);
  EXPECT_EQ(events[0].crossings, 2u);
  EXPECT_TRUE(test.controller->take_events(*watcher, test.now).empty());
}

TEST(Controller, OnlyDrivesThatThereAreCanBeWatched) {
  OneAgent test;
  EXPECT_EQ(test.controller.watch({.watches = {{.drive = drive_id(4)}}}).error(), Errc::kNotFound);
  EXPECT_EQ(test.controller.watch({.watches = {{.drive = {BoxId(1), Kind::kDrive, 0}}}}).error(),
            Errc::kNotFound);
  EXPECT_EQ(test.controller.watch({.watches = {{.drive = {BoxId(0), Kind::kPort, 0}}}}).error(),
            Errc::kInvalid);
}

TEST(Controller, KnowsWhoUsesAComponent) {
  TestView test;
  test.add("host1", "vol1", 0).streams.push_back({.drive = 1});
  test.add("host2", "vol2", 1).streams.push_back({.drive = 1});
  test.add("host3", "vol3", 1).streams.push_back({.drive = 2});
  test.run(500_ms);
  const auto users = [&](Kind kind, uint16_t index) {
    return test.controller->users_of({BoxId(0), kind, index});
  };
  EXPECT_EQ(users(Kind::kDrive, 1), (std::vector<std::string>{"host1", "host2"}));
  EXPECT_EQ(users(Kind::kNetPipe, 1), (std::vector<std::string>{"host2", "host3"}));
  EXPECT_TRUE(users(Kind::kDrive, 0).empty());
}

// What the one that restarted knows within a second is what the old one knew.
TEST(Controller, OneThatStartsAgainRebuildsTheViewWithinASecond) {
  TestView test;
  for (uint16_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    TestClient& client = test.add("host" + number, "vol" + number, i % 2);
    client.streams.push_back(
        {.drive = 2, .type = IoType::kWrite, .bytes = 65536, .every = 1_ms, .rtt = 5_ms});
    client.streams.push_back({.drive = i, .every = 2_ms});
  }
  test.run(2_s);
  const View before = test.controller->view(test.now);
  test.controller = std::make_unique<Controller>(2, std::vector{test_box()});
  test.run(1_s);
  const View after = test.controller->view(test.now);
  EXPECT_EQ(after.controller, 2u);
  EXPECT_EQ(after.flows.size(), before.flows.size());
  for (const ComponentView& was : before.components) {
    const ComponentView* is = after.find(was.id);
    ASSERT_NE(is, nullptr);
    for (size_t i = 0; i < kDirections; ++i) {
      EXPECT_NEAR(static_cast<double>(is->traffic[i].now.bytes_per_s),
                  static_cast<double>(was.traffic[i].now.bytes_per_s),
                  0.02 * static_cast<double>(was.traffic[i].now.bytes_per_s) + 1);
    }
    if (!was.drive) continue;
    EXPECT_EQ(is->drive->is_congested, was.drive->is_congested);
    EXPECT_NEAR(is->drive->write_cost_x10, was.drive->write_cost_x10, 2);
  }
}

TEST(Controller, WhileItIsAwayAgentsDropAndThenGoOn) {
  TestView test;
  TestClient& client = test.add("host1", "vol1");
  client.streams.push_back({.every = 100_us});
  test.run(1_s);
  test.is_connected = false;
  test.run(10_s);
  EXPECT_GT(client.agent.counters().dropped, 90'000u);
  test.is_connected = true;
  test.run(1_s);
  const std::vector<ClientView> directory = test.controller->directory(test.now);
  ASSERT_EQ(directory.size(), 1u);
  EXPECT_EQ(directory[0].dropped, client.agent.counters().dropped);
  EXPECT_GT(client.agent.counters().late, 0u);
  const View view = test.controller->view(test.now);
  EXPECT_NEAR(static_cast<double>(view.find(drive_id(0))->traffic[1].now.ops_per_s), 10'000, 500);
}

TEST(Controller, ForgetsClientsThatSayNothing) {
  TestView test;
  test.add("host1", "vol1").streams.push_back({});
  test.run(500_ms);
  EXPECT_EQ(test.controller->directory(test.now).size(), 1u);
  test.is_connected = false;
  test.run(Controller::kForgetAfter + 1_s);
  EXPECT_TRUE(test.controller->directory(test.now).empty());
  EXPECT_TRUE(test.controller->view(test.now).flows.empty());
}

// A liar that says all that it may: what others are told of themselves stays as it is.
TEST(Controller, AClientThatLiesChangesNothingThatIsSaidOfOthers) {
  const auto flows_of = [](const View& view, const std::string& client) {
    std::vector<FlowView> flows;
    for (const FlowView& flow : view.flows) {
      if (flow.client == client) flows.push_back(flow);
    }
    return flows;
  };
  const auto run = [&](bool lies) {
    TestView test;
    test.add("host1", "vol1").streams.push_back({.drive = 1, .every = 500_us, .rtt = 300_us});
    test.add("host2", "vol2").streams.push_back({.drive = 1, .every = 700_us, .rtt = 200_us});
    if (lies) {
      test.add("liar", "vol1")
          .streams.push_back({.drive = 1,
                              .type = IoType::kRead,
                              .bytes = kIoBytesMax,
                              .every = 50_us,
                              .rtt = 50_s});
    }
    test.run(1_s);
    return test.controller->view(test.now);
  };
  const View honest = run(false);
  const View lied = run(true);
  EXPECT_EQ(flows_of(honest, "host1").size(), 1u);
  EXPECT_EQ(flows_of(honest, "host2").size(), 1u);
  EXPECT_EQ(flows_of(lied, "liar").size(), 1u);
  EXPECT_EQ(flows_of(lied, "host1"), flows_of(honest, "host1"));
  EXPECT_EQ(flows_of(lied, "host2"), flows_of(honest, "host2"));
  EXPECT_FALSE(lied.find(drive_id(1))->drive->is_congested);
}

}  // namespace
}  // namespace cairn::view
