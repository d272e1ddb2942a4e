// SPDX-License-Identifier: Apache-2.0
#include "nvme/controller/events.h"

#include <gtest/gtest.h>

#include "nvme/format/limits.h"
#include "task/task.h"
#include "testing/test_core.h"

namespace cairn::nvme {
namespace {

class EventsTest : public ::testing::Test {
 protected:
  task::TestCore core;
  Events events;

  static task::Task<Result<uint32_t>> ask(Events& from, task::CancelToken token = {}) {
    Result<uint32_t> event = co_await from.next(7, token);
    co_return event;
  }
  // The result of a request that must have ended.
  uint32_t value(task::Task<Result<uint32_t>>& request) {
    core.run();
    EXPECT_TRUE(request.is_done());
    return request.take().value_or(0);
  }
};

constexpr uint32_t kNamespaceDw0 = 0x0004'0002;
constexpr uint32_t kAnaDw0 = 0x000c'0302;
constexpr uint32_t kDiscoveryDw0 = 0x0070'f002;
constexpr uint32_t kReservationDw0 = 0x0080'0006;
constexpr uint32_t kTemperatureDw0 = 0x0002'0101;

TEST_F(EventsTest, DwordsAreGolden) {
  const std::pair<EventKind, uint32_t> all[] = {{EventKind::kNamespaces, kNamespaceDw0},
                                                {EventKind::kAna, kAnaDw0},
                                                {EventKind::kDiscovery, kDiscoveryDw0},
                                                {EventKind::kReservation, kReservationDw0},
                                                {EventKind::kTemperature, kTemperatureDw0}};
  for (const auto& [kind, dw0] : all) {
    task::Task<Result<uint32_t>> request = ask(events);
    events.raise(kind);
    EXPECT_EQ(value(request), dw0);
  }
}

TEST_F(EventsTest, OneRaisedBeforeIsToldToTheNextRequest) {
  events.raise(EventKind::kAna);
  task::Task<Result<uint32_t>> request = ask(events);
  EXPECT_EQ(value(request), kAnaDw0);
}

TEST_F(EventsTest, AKindIsToldOnceUntilItsPageIsRead) {
  events.raise(EventKind::kNamespaces);
  task::Task<Result<uint32_t>> first = ask(events);
  EXPECT_EQ(value(first), kNamespaceDw0);
  events.raise(EventKind::kNamespaces);
  task::Task<Result<uint32_t>> second = ask(events);
  core.run();
  EXPECT_FALSE(second.is_done());
  events.page_was_read(LogPage::kAna);
  events.raise(EventKind::kNamespaces);
  core.run();
  EXPECT_FALSE(second.is_done()) << "another page";
  events.page_was_read(LogPage::kChangedNamespaces);
  core.run();
  EXPECT_FALSE(second.is_done()) << "what happened before was in the page";
  events.raise(EventKind::kNamespaces);
  EXPECT_EQ(value(second), kNamespaceDw0);
}

TEST_F(EventsTest, KindsDoNotMaskEachOther) {
  task::Task<Result<uint32_t>> first = ask(events);
  task::Task<Result<uint32_t>> second = ask(events);
  events.raise(EventKind::kAna);
  events.raise(EventKind::kNamespaces);
  EXPECT_EQ(value(first), kAnaDw0);
  EXPECT_EQ(value(second), kNamespaceDw0);
}

TEST_F(EventsTest, ThereIsRoomForSoManyRequests) {
  std::vector<task::Task<Result<uint32_t>>> requests;
  for (int i = 0; i < kEventRequestsMax; ++i) {
    EXPECT_TRUE(events.has_room());
    requests.push_back(ask(events));
  }
  EXPECT_FALSE(events.has_room());
  events.raise(EventKind::kAna);
  EXPECT_TRUE(events.has_room());
  events.end();
  core.run();
  for (size_t i = 1; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].take().error(), Errc::kClosed);
  }
  task::Task<Result<uint32_t>> late = ask(events);
  core.run();
  EXPECT_EQ(late.take().error(), Errc::kClosed);
}

TEST_F(EventsTest, ACancelledRequestMakesRoomAndTakesNoEvent) {
  task::CancelSource source;
  task::Task<Result<uint32_t>> request = ask(events, source.token());
  source.request();
  core.run();
  EXPECT_EQ(request.take().error(), Errc::kCancelled);
  events.raise(EventKind::kAna);
  task::Task<Result<uint32_t>> next = ask(events);
  EXPECT_EQ(value(next), kAnaDw0);
}

TEST_F(EventsTest, AnAbortEndsTheRequestOfThatCommand) {
  task::Task<Result<uint32_t>> request = ask(events);
  EXPECT_FALSE(events.abort(8));
  EXPECT_TRUE(events.abort(7));
  EXPECT_FALSE(events.abort(7));
  core.run();
  EXPECT_EQ(request.take().error(), Errc::kCancelled);
}

}  // namespace
}  // namespace cairn::nvme
