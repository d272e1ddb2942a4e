// SPDX-License-Identifier: Apache-2.0
// Who is missed, since which view, and for how long others wait for it.
#include "kv/ring/absences.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/units.h"

namespace cairn::kv::ring {
namespace {

constexpr Incarnation incarnation_of(uint64_t process, uint64_t lease = 0) {
  return Incarnation((process << kLeaseCountBits) + lease);
}

class AbsencesTest : public testing::Test {
 protected:
  AbsencesTest() {
    for (uint64_t id = 1; id <= 4; ++id) {
      view_.members.push_back({.id = MemberId(id), .incarnation = incarnation_of(id)});
      come(id, incarnation_of(id));
    }
  }
  void come(uint64_t id, Incarnation incarnation) {
    nodes_[MemberId(id)] = {.member = {.id = MemberId(id), .incarnation = incarnation}};
  }
  void go(uint64_t id) { nodes_.erase(MemberId(id)); }
  PlanInput look(Duration at) {
    PlanInput input{.nodes = nodes_};
    absences_.look(view_, Time{} + at, input);
    return input;
  }

  View view_{.epoch = Epoch(7)};
  std::map<MemberId, NodeRecord> nodes_;
  Absences absences_{{.give_up_after = 60_s, .return_time = 1_s}};
};

TEST_F(AbsencesTest, WhoeverIsMissedIsSoSinceTheViewInWhichThatWasNoticed) {
  EXPECT_TRUE(look(1_s).missed.empty());
  go(2);
  EXPECT_EQ(look(2_s).missed, (std::map<MemberId, Epoch>{{MemberId(2), Epoch(7)}}));
  view_.epoch = Epoch(9);
  EXPECT_EQ(look(3_s).missed, (std::map<MemberId, Epoch>{{MemberId(2), Epoch(7)}}));
  come(2, incarnation_of(2));
  EXPECT_TRUE(look(4_s).missed.empty());
  go(2);
  EXPECT_EQ(look(5_s).missed, (std::map<MemberId, Epoch>{{MemberId(2), Epoch(9)}}));
}

TEST_F(AbsencesTest, AnotherLeaseOfTheSameProcessIsNoAbsenceAndAnotherProcessIs) {
  come(1, incarnation_of(1, 5));
  come(2, incarnation_of(200));
  const PlanInput input = look(1_s);
  EXPECT_EQ(input.missed, (std::map<MemberId, Epoch>{{MemberId(2), Epoch(7)}}));
  EXPECT_TRUE(look(100_s).given_up.empty()) << "somebody is at its store";
}

// One after the other they may die; together they rather lost the metadata store.
TEST_F(AbsencesTest, WhenHalfOfAllLoseTheirLeasesAtOnceTheyAreAwaitedForAMoment) {
  go(1);
  EXPECT_TRUE(look(1_s).awaited.empty());
  go(2);
  EXPECT_EQ(look(1500_ms).awaited, (std::set<MemberId>{MemberId(1), MemberId(2)}));
  EXPECT_EQ(look(2_s).awaited, (std::set<MemberId>{MemberId(2)}));
  EXPECT_TRUE(look(2500_ms).awaited.empty());
}

TEST_F(AbsencesTest, TheLastOfThemIsAwaitedThoughAllOthersAreBack) {
  go(1);
  come(2, incarnation_of(2, 1));
  come(3, incarnation_of(3, 1));
  EXPECT_EQ(look(1_s).awaited, std::set<MemberId>{MemberId(1)});
  for (Member& member : view_.members) {
    if (member.id != MemberId(1)) member.incarnation = nodes_[member.id].member.incarnation;
  }
  EXPECT_EQ(look(1500_ms).awaited, std::set<MemberId>{MemberId(1)});
  EXPECT_TRUE(look(2_s).awaited.empty());
}

TEST_F(AbsencesTest, WhoeverIsAwayForLongIsGivenUpAndNotOneThatCameBack) {
  go(1);
  EXPECT_TRUE(look(1_s).given_up.empty());
  come(1, incarnation_of(100));
  EXPECT_TRUE(look(30_s).given_up.empty());
  go(1);
  EXPECT_TRUE(look(62_s).given_up.empty());
  EXPECT_EQ(look(122_s).given_up, (std::set<MemberId>{MemberId(1)}));
  absences_.forget();
  EXPECT_TRUE(look(123_s).given_up.empty());
}

}  // namespace
}  // namespace cairn::kv::ring
