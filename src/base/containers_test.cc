// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "base/list.h"
#include "base/ring.h"
#include "base/rng.h"

namespace cairn {
namespace {

struct Item : ListHook<> {
  explicit Item(int v) : value(v) {}
  int value;
};

std::vector<int> values(List<Item>& list) {
  std::vector<int> seen;
  list.for_each([&](Item& item) { seen.push_back(item.value); });
  return seen;
}

TEST(List, KeepsOrderAndLetsAnyoneLeave) {
  List<Item> list;
  Item a(1), b(2), c(3);
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  EXPECT_EQ(values(list), (std::vector{1, 2, 3}));
  b.unlink();
  EXPECT_EQ(values(list), (std::vector{1, 3}));
  EXPECT_EQ(list.pop_front(), &a);
  EXPECT_EQ(list.back(), &c);
}

TEST(List, AndItsMembersMayDieInAnyOrder) {
  auto item = std::make_unique<Item>(1);
  {
    List<Item> list;
    list.push_back(*item);
    Item brief(2);
    list.push_back(brief);
  }
  EXPECT_FALSE(item->is_linked());
  List<Item> second;
  second.push_back(*item);
  item.reset();
  EXPECT_TRUE(second.empty());
}

TEST(List, ForEachMayUnlinkTheVisited) {
  List<Item> list;
  Item a(1), b(2), c(3);
  for (Item* item : {&a, &b, &c}) list.push_back(*item);
  list.for_each([](Item& item) {
    if (item.value != 2) item.unlink();
  });
  EXPECT_EQ(values(list), std::vector{2});
}

TEST(Ring, RefusesWhenFullAndKeepsTheValue) {
  Ring<std::unique_ptr<int>> ring(2);
  EXPECT_TRUE(ring.push(std::make_unique<int>(1)));
  EXPECT_TRUE(ring.push(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(ring.push(std::move(third)));
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(*ring.pop(), 1);
  EXPECT_TRUE(ring.push(std::move(third)));
}

TEST(Ring, BehavesAsAQueueOverRandomOperations) {
  Rng rng(7);
  Ring<int> ring(5);
  std::deque<int> model;
  for (int i = 0; i < 10'000; ++i) {
    if (rng.bernoulli(0.5)) {
      int value = i;
      const bool pushed = ring.push(std::move(value));
      EXPECT_EQ(pushed, model.size() < 5);
      if (pushed) model.push_back(i);
    } else if (!model.empty()) {
      ASSERT_EQ(ring.pop(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
  }
}

TEST(Rng, SameSeedSameStreamAndBoundsHold) {
  Rng a(42), b(42), c(43);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
  int lows = 0;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = a.between(3, 5);
    ASSERT_TRUE(value >= 3 && value <= 5);
    lows += value == 3 ? 1 : 0;
  }
  EXPECT_NEAR(lows, 3333, 300);
  EXPECT_FALSE(a.bernoulli(0));
  EXPECT_TRUE(a.bernoulli(1));
}

}  // namespace
}  // namespace cairn
