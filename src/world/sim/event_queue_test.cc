// SPDX-License-Identifier: Apache-2.0
#include "world/sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/units.h"

namespace cairn::sim {
namespace {

const Origin kSomewhere;
const EventKind kKind("test.event", [](Event&) {});

struct Numbered : Event {
  explicit Numbered(int number) : Event(kKind, kSomewhere), id(number) {}
  int id;
};

TEST(EventQueue, RunsByTimeThenByOrderOfScheduling) {
  EventQueue queue;
  Rng rng(3);
  std::vector<std::unique_ptr<Numbered>> events;
  std::vector<std::pair<int64_t, int>> expected;
  for (int i = 0; i < 2000; ++i) {
    events.push_back(std::make_unique<Numbered>(i));
    const auto when = static_cast<int64_t>(rng.below(50));
    queue.schedule(*events.back(), Time{when});
    expected.emplace_back(when, i);
  }
  std::ranges::sort(expected);
  for (const auto& [when, id] : expected) {
    const EventQueue::Due due = queue.pop();
    EXPECT_EQ(due.when.ns, when);
    EXPECT_EQ(static_cast<Numbered*>(due.event)->id, id);
    EXPECT_FALSE(due.event->is_scheduled());
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(), Time::never());
}

TEST(EventQueue, CancelledAndDestroyedEventsNeverRun) {
  EventQueue queue;
  Rng rng(4);
  std::vector<std::unique_ptr<Numbered>> events;
  for (int i = 0; i < 1000; ++i) {
    events.push_back(std::make_unique<Numbered>(i));
    queue.schedule(*events.back(), Time{static_cast<int64_t>(rng.below(1000))});
  }
  size_t left = events.size();
  for (auto& event : events) {
    const uint64_t fate = rng.below(3);
    if (fate == 0) event->cancel();
    if (fate == 1) event.reset();
    if (fate != 2) --left;
  }
  EXPECT_EQ(queue.size(), left);
  Time last;
  while (!queue.empty()) {
    const EventQueue::Due due = queue.pop();
    EXPECT_GE(due.when, last);
    last = due.when;
    --left;
  }
  EXPECT_EQ(left, 0u);
}

TEST(EventQueue, MovingAnOwnersEventsKeepsTheirOrder) {
  const int owners[2] = {};
  const Origin first{.owner = &owners[0]};
  const Origin second{.owner = &owners[1]};
  EventQueue queue;
  EventQueue other;
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 100; ++i) {
    events.push_back(std::make_unique<Event>(kKind, i % 2 == 0 ? first : second));
    queue.schedule(*events.back(), Time{100 - i / 10});
  }
  queue.move_owned(&owners[0], other);
  EXPECT_EQ(queue.count_owned(&owners[0]), 0u);
  EXPECT_EQ(queue.size(), 50u);
  ASSERT_EQ(other.size(), 50u);
  EventQueue::Due last = other.pop();
  while (!other.empty()) {
    const EventQueue::Due due = other.pop();
    EXPECT_TRUE(last.when < due.when || (last.when == due.when && last.sequence < due.sequence));
    last = due;
  }
}

TEST(EventQueueDeathTest, SchedulingTwiceIsABug) {
  EventQueue queue;
  Event event(kKind, kSomewhere);
  queue.schedule(event, Time{1});
  EXPECT_DEATH(queue.schedule(event, Time{2}), "scheduled once at a time");
}

}  // namespace
}  // namespace cairn::sim
