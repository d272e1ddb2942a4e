// SPDX-License-Identifier: Apache-2.0
#include "view/agent.h"

#include <gtest/gtest.h>

#include <array>

#include "view/view_testing.h"

namespace cairn::view {
namespace {

constexpr Time at(int64_t ms) { return Time{ms * 1'000'000}; }

IoVector vector_at(int64_t ms, uint32_t bytes = 4096) {
  return {.session = SessionId(1), .bytes = bytes, .rtt = 100_us, .completed = at(ms)};
}

// One that is attached to a controller with incarnation 7.
struct Attached {
  Attached() {
    EXPECT_TRUE(agent.open_session({.id = {}, .volume = "vol1", .box = "b1", .port = 0}));
    agent.attached({.controller = 7, .boxes = {}, .sessions = {{SessionId(1), BoxId(0)}}});
  }
  Agent agent{5};
};

TEST(Agent, SendsABatchAt128VectorsOrWhenTheOldestIs100MillisecondsOld) {
  Attached test;
  EXPECT_EQ(test.agent.due_at(), Time::never());
  test.agent.note(vector_at(1000));
  EXPECT_EQ(test.agent.due_at(), at(1100));
  EXPECT_FALSE(test.agent.report_request(at(1099)));
  for (int i = 0; i < 127; ++i) test.agent.note(vector_at(1001));
  const std::optional<ReportRequest> batch = test.agent.report_request(at(1002));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->vectors.size(), kBatchMax);
  EXPECT_EQ(batch->number, 1u);
  EXPECT_EQ(batch->controller, 7u);
}

TEST(Agent, SendsTheSameBatchAgainUntilItIsAnswered) {
  Attached test;
  test.agent.note(vector_at(1000));
  const std::optional<ReportRequest> first = test.agent.report_request(at(1100));
  test.agent.note(vector_at(1101));
  const std::optional<ReportRequest> again = test.agent.report_request(at(1300));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(again->number, first->number);
  EXPECT_EQ(again->vectors, first->vectors);
  EXPECT_EQ(again->sent, at(1300));
  test.agent.reported({.number = 1, .changed = {}});
  const std::optional<ReportRequest> next = test.agent.report_request(at(1300));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->number, 2u);
  EXPECT_EQ(next->vectors.front().completed, at(1101));
}

TEST(Agent, DropsTheOldestAndCountsThemWhenNobodyTakesThem) {
  Attached test;
  for (uint32_t i = 0; i < Agent::kKept + 10; ++i) test.agent.note(vector_at(1000, i));
  EXPECT_EQ(test.agent.counters().dropped, 10u);
  const std::optional<ReportRequest> batch = test.agent.report_request(at(1000));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->vectors.front().bytes, 10u);
  EXPECT_EQ(batch->dropped, 10u);
}

TEST(Agent, ItsOwnRequestsDoNotMakeItsViewStaleAndThoseOfOthersDo) {
  Attached test;
  const ComponentId id = drive_id(0);
  EXPECT_TRUE(test.agent.is_stale(id));
  test.agent.note(vector_at(1000));
  EXPECT_TRUE(test.agent.report_request(at(1100)));
  test.agent.reported({.number = 1, .changed = {{.id = id, .counter = 10, .own = 1}}});
  ASSERT_EQ(test.agent.stale().components.size(), 1u);
  test.agent.synced({.controller = 7, .at = {}, .components = {{.id = id, .recency = 10}}});
  EXPECT_FALSE(test.agent.is_stale(id));

  // |X' - X| = 1 for one request: nobody else was there.
  test.agent.note(vector_at(1200));
  EXPECT_TRUE(test.agent.report_request(at(1300)));
  test.agent.reported({.number = 2, .changed = {{.id = id, .counter = 11, .own = 1}}});
  EXPECT_FALSE(test.agent.is_stale(id));
  // |X' - X| = 2: somebody was.
  test.agent.note(vector_at(1400));
  EXPECT_TRUE(test.agent.report_request(at(1500)));
  test.agent.reported({.number = 3, .changed = {{.id = id, .counter = 13, .own = 1}}});
  EXPECT_TRUE(test.agent.is_stale(id));
  EXPECT_NE(test.agent.find(id), nullptr);
  // An answer from before that does not make it new.
  test.agent.synced({.controller = 7, .at = {}, .components = {{.id = id, .recency = 12}}});
  EXPECT_TRUE(test.agent.is_stale(id));
  // Nor does one of another controller, or of something that it never used.
  test.agent.synced({.controller = 8, .at = {}, .components = {{.id = id, .recency = 99}}});
  EXPECT_TRUE(test.agent.is_stale(id));
  test.agent.synced({.controller = 7, .at = {}, .components = {{.id = drive_id(3)}}});
  EXPECT_EQ(test.agent.find(drive_id(3)), nullptr);
}

TEST(Agent, AnotherControllerMakesItForgetCountersAndSendWhatItHas) {
  Attached test;
  test.agent.note(vector_at(1000));
  EXPECT_TRUE(test.agent.report_request(at(1100)));
  test.agent.reported({.number = 1, .changed = {{.id = drive_id(0), .counter = 10, .own = 1}}});
  test.agent.note(vector_at(1200));
  EXPECT_TRUE(test.agent.report_request(at(1300)));
  test.agent.refused(Errc::kNotFound);
  EXPECT_TRUE(test.agent.must_attach());
  EXPECT_FALSE(test.agent.report_request(at(1300)));
  test.agent.attached({.controller = 8, .boxes = {}, .sessions = {{SessionId(1), BoxId(0)}}});
  EXPECT_TRUE(test.agent.stale().components.empty());
  const std::optional<ReportRequest> batch = test.agent.report_request(at(1310));
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->number, 1u);
  EXPECT_EQ(batch->controller, 8u);
  EXPECT_EQ(batch->vectors.front().completed, at(1200));
}

TEST(Agent, ABatchWhoseAnswerWasLostIsNotSentUnderANewNumber) {
  Attached test;
  test.agent.note(vector_at(1000));
  EXPECT_TRUE(test.agent.report_request(at(1100)));
  test.agent.close_session(SessionId(1));
  ASSERT_TRUE(test.agent.open_session({.id = {}, .volume = "vol2", .box = "b1", .port = 0}));
  // The controller had counted batch 1.
  test.agent.attached(
      {.controller = 7, .number = 1, .boxes = {}, .sessions = {{SessionId(2), BoxId(0)}}});
  EXPECT_EQ(test.agent.due_at(), Time::never());
}

TEST(Agent, SessionsOpenedWhileItAttachesAttachNext) {
  Attached test;
  ASSERT_TRUE(test.agent.open_session({.id = {}, .volume = "vol2", .box = "b1", .port = 0}));
  test.agent.attached({.controller = 7, .boxes = {}, .sessions = {{SessionId(1), BoxId(0)}}});
  EXPECT_TRUE(test.agent.must_attach());
  EXPECT_EQ(test.agent.box_of(SessionId(1)), BoxId(0));
  EXPECT_EQ(test.agent.box_of(SessionId(2)), std::nullopt);
}

}  // namespace
}  // namespace cairn::view
