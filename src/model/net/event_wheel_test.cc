// SPDX-License-Identifier: Apache-2.0
#include "model/net/event_wheel.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace cairn::net {
namespace {

struct Timer {
  Picos time = 0;
  uint64_t order = 0;
  uint32_t next = 0;
};

TEST(EventWheel, GivesEventsInOrderOfTimeThenOrder) {
  Rng rng(3);
  Pool<Timer> pool;
  EventWheel<Timer> wheel(pool);
  std::set<std::tuple<Picos, uint64_t, uint32_t>> expected;
  Picos now = 0;
  uint64_t order = 0;
  const Picos spans[] = {1, kNanosecond, kMicrosecond, 100 * kMicrosecond, 10 * kMillisecond};
  for (int step = 0; step < 20'000; ++step) {
    for (uint64_t i = rng.below(3); i > 0; --i) {
      const uint32_t index = pool.take();
      pool[index].time = now + static_cast<Picos>(rng.below(spans[rng.below(5)] * 2));
      pool[index].order = order++;
      expected.emplace(pool[index].time, pool[index].order, index);
      wheel.push(index);
    }
    ASSERT_EQ(wheel.empty(), expected.empty());
    ASSERT_EQ(wheel.next_time(), expected.empty() ? kNever : std::get<0>(*expected.begin()));
    const Picos until = now + static_cast<Picos>(rng.below(spans[rng.below(5)] * 2));
    if (rng.bernoulli(0.3)) {  // nothing but time may pass
      const bool due = !expected.empty() && std::get<0>(*expected.begin()) <= until;
      if (!due) {
        ASSERT_EQ(wheel.pop(until), kNone);
        now = until;
        continue;
      }
    }
    const uint32_t index = wheel.pop(kNever);
    if (expected.empty()) {
      ASSERT_EQ(index, kNone);
      continue;
    }
    ASSERT_EQ(index, std::get<2>(*expected.begin()));
    now = std::get<0>(*expected.begin());
    expected.erase(expected.begin());
    pool.give_back(index);
  }
}

}  // namespace
}  // namespace cairn::net
