// SPDX-License-Identifier: Apache-2.0
#include "raw/history.h"

#include <gtest/gtest.h>

namespace cairn::raw_tests {
namespace {

using Outcome = History::Outcome;

class HistoryTest : public testing::Test {
 protected:
  uint64_t write(uint32_t host, Outcome outcome) {
    const uint64_t value = history.begin_write({0, 2}, host);
    history.end_write(value, outcome);
    return value;
  }
  bool may_find(uint64_t value, uint64_t begun) {
    History copy = history;
    copy.check_read({0, 2}, begun, History::contents(value, {0, 2}));
    return copy.wrong().empty();
  }
  History history{8};
};

TEST_F(HistoryTest, AReadFindsTheLastWriteAndNoneBefore) {
  EXPECT_TRUE(may_find(0, history.now()));
  const uint64_t before = history.now();
  const uint64_t first = write(1, Outcome::kDone);
  EXPECT_TRUE(may_find(0, before)) << "a read that began before it";
  EXPECT_FALSE(may_find(0, history.now()));
  const uint64_t second = write(2, Outcome::kDone);
  EXPECT_FALSE(may_find(first, history.now()));
  EXPECT_TRUE(may_find(second, history.now()));
  EXPECT_FALSE(may_find(second + 1, history.now()));
}

TEST_F(HistoryTest, WritesAtTheSameTimeEndInAnyOrder) {
  const uint64_t one = history.begin_write({0, 2}, 1);
  const uint64_t two = history.begin_write({0, 2}, 2);
  history.end_write(two, Outcome::kDone);
  EXPECT_TRUE(may_find(one, history.now()));
  history.end_write(one, Outcome::kDone);
  EXPECT_TRUE(may_find(one, history.now()));
  EXPECT_TRUE(may_find(two, history.now()));
}

TEST_F(HistoryTest, WhatWasRefusedIsNotThereAndWhatWasAbortedIsNotLate) {
  EXPECT_FALSE(may_find(write(1, Outcome::kRefused), history.now()));
  const uint64_t aborted = write(1, Outcome::kInDoubt);
  EXPECT_TRUE(may_find(aborted, history.now()));
  EXPECT_TRUE(may_find(0, history.now()));
  write(2, Outcome::kDone);
  EXPECT_FALSE(may_find(aborted, history.now()));
}

TEST_F(HistoryTest, WhoIsFencedOffWritesNothingAfterwards) {
  const uint64_t open = history.begin_write({0, 2}, 1);
  history.fence(1);
  write(2, Outcome::kDone);
  EXPECT_FALSE(may_find(open, history.now()));
}

TEST_F(HistoryTest, ABlockIsWholeAndInItsPlace) {
  const uint64_t value = write(1, Outcome::kDone);
  std::vector<std::byte> data = History::contents(value, {0, 2});
  history.check_read({0, 2}, history.now(), data);
  EXPECT_EQ(history.wrong(), "");
  data[700] ^= std::byte{1};
  history.check_read({0, 2}, history.now(), data);
  EXPECT_NE(history.wrong(), "");
}

TEST_F(HistoryTest, AValueIsReplacedOnce) {
  const uint64_t value = write(1, Outcome::kDone);
  history.check_swap({0, 2}, history.now(), value);
  EXPECT_EQ(history.wrong(), "");
  history.check_swap({0, 2}, history.now(), value);
  EXPECT_NE(history.wrong(), "");
}

}  // namespace
}  // namespace cairn::raw_tests
