// SPDX-License-Identifier: Apache-2.0
#include "model/net/reference_nic.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::net {
namespace {

class ReferenceNicTest : public testing::Test {
 protected:
  uint32_t next() {
    return nic_.take_next([this](uint32_t flow) { return ready_.contains(flow); },
                          [this](uint32_t flow) { return done_.contains(flow); },
                          [this](uint32_t flow) { left_.push_back(flow); });
  }
  void add(std::initializer_list<uint32_t> flows) {
    for (const uint32_t flow : flows) nic_.add(flow);
  }

  ReferenceNic nic_;
  std::set<uint32_t> ready_;
  std::set<uint32_t> done_;
  std::vector<uint32_t> left_;
};

TEST_F(ReferenceNicTest, NobodySendsWhereNobodyIs) { EXPECT_EQ(next(), ReferenceNic::kNobody); }

// The first place counts as the last that was served.
TEST_F(ReferenceNicTest, FlowsTakeTurnsByTheirPlaces) {
  add({10, 11, 12});
  ready_ = {10, 11, 12};
  EXPECT_EQ(next(), 11U);
  EXPECT_EQ(next(), 12U);
  EXPECT_EQ(next(), 10U);
  ready_ = {10, 12};
  EXPECT_EQ(next(), 12U);
}

TEST_F(ReferenceNicTest, DoneFlowsStayUntilASearchComesPastThem) {
  add({10, 11, 12, 13});
  ready_ = {11, 13};
  done_ = {10, 12};
  EXPECT_EQ(next(), 11U);
  EXPECT_TRUE(left_.empty());
  EXPECT_EQ(next(), 13U);
  // 10, in front of where the search began, was not met.
  EXPECT_EQ(left_, std::vector<uint32_t>{12});
  EXPECT_EQ(nic_.flows(), (std::vector<uint32_t>{10, 11, 13}));
}

TEST_F(ReferenceNicTest, AllDoneOnesBehindTheFirstThatWasMetLeave) {
  add({10, 11, 12, 13});
  ready_ = {12};
  done_ = {11, 13};
  EXPECT_EQ(next(), 12U);
  EXPECT_EQ(left_, (std::vector<uint32_t>{11, 13}));
  EXPECT_EQ(nic_.flows(), (std::vector<uint32_t>{10, 12}));
}

// The place that was served last is a number: flows that leave do not move it.
TEST_F(ReferenceNicTest, ThePlaceOfTheLastTurnStaysWhenOthersLeave) {
  add({10, 11, 12, 13});
  ready_ = {12};
  EXPECT_EQ(next(), 12U);
  ready_ = {};
  done_ = {10, 11};
  EXPECT_EQ(next(), ReferenceNic::kNobody);
  EXPECT_EQ(nic_.flows(), (std::vector<uint32_t>{12, 13}));
  ready_ = {12, 13};
  EXPECT_EQ(next(), 13U);  // (2 + 1) modulo the two that are left
}

TEST_F(ReferenceNicTest, EmptiesWhenAllAreDone) {
  add({10, 11});
  done_ = {10, 11};
  EXPECT_EQ(next(), ReferenceNic::kNobody);
  EXPECT_TRUE(nic_.empty());
}

}  // namespace
}  // namespace cairn::net
