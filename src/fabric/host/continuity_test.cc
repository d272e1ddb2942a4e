// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/continuity.h"

#include <gtest/gtest.h>

namespace cairn::fabric {
namespace {

constexpr drive::Incarnation kFirst{.medium = 7, .opening = 1};
constexpr drive::Incarnation kAgain{.medium = 7, .opening = 2};
constexpr drive::Incarnation kNew{.medium = 8, .opening = 3};

TEST(Continuity, ARestartLosesWhatNoFlushHasCovered) {
  Continuity told;
  told.reached(kFirst);
  told.changed(1);
  const drive::Incarnation before = told.incarnation();
  told.reached(kAgain);
  EXPECT_EQ(told.losses(), 1U);
  EXPECT_EQ(told.incarnation().medium, before.medium);
  EXPECT_NE(told.incarnation().opening, before.opening);
  EXPECT_FALSE(told.flushed(told.mark()));
  EXPECT_TRUE(told.flushed(told.mark())) << "it was told";
}

TEST(Continuity, ARestartLosesNothingThatWasFlushed) {
  Continuity told;
  told.reached(kFirst);
  told.changed(1);
  ASSERT_TRUE(told.flushed(told.mark()));
  const drive::Incarnation before = told.incarnation();
  told.reached(kAgain);
  EXPECT_EQ(told.incarnation(), before);
  EXPECT_TRUE(told.flushed(told.mark()));
}

TEST(Continuity, AFlushCoversOnlyWhatWasDoneWhenItBegan) {
  Continuity told;
  told.reached(kFirst);
  told.changed(1);
  const Continuity::Mark early = told.mark();
  told.changed(1);
  ASSERT_TRUE(told.flushed(early));
  told.reached(kAgain);
  EXPECT_FALSE(told.flushed(told.mark()));
}

TEST(Continuity, EveryFlushThatBeganBeforeALossWasToldFails) {
  Continuity told;
  told.reached(kFirst);
  told.changed(1);
  const Continuity::Mark before = told.mark();
  told.reached(kAgain);
  const Continuity::Mark after = told.mark();
  EXPECT_FALSE(told.flushed(after));
  EXPECT_FALSE(told.flushed(before));
  EXPECT_TRUE(told.flushed(told.mark()));
}

TEST(Continuity, AFlushOfWhoKnowsOfLossesTakesTheNewsFromNobody) {
  Continuity told;
  told.reached(kFirst);
  told.changed(1);
  told.reached(kAgain);
  EXPECT_TRUE(told.flushed(told.mark(), true));
  EXPECT_FALSE(told.flushed(told.mark()));
  told.changed(2);
  EXPECT_TRUE(told.flushed(told.mark(), true)) << "it covers what was written";
  told.reached(kFirst);
  EXPECT_EQ(told.losses(), 1U);
}

TEST(Continuity, AnAnswerOfATargetThatIsGoneIsLost) {
  Continuity told;
  told.reached(kFirst);
  told.reached(kAgain);
  told.changed(1);  // by a path that has not noticed yet
  EXPECT_EQ(told.losses(), 1U);
  told.changed(2);
  EXPECT_EQ(told.losses(), 1U);
}

TEST(Continuity, AnotherMediumIsRefusedUntilTheOneThatWasIsBack) {
  Continuity told;
  told.reached(kFirst);
  const drive::Incarnation before = told.incarnation();
  EXPECT_FALSE(told.is_same_medium(kNew));
  told.replace();
  EXPECT_TRUE(told.is_replaced());
  EXPECT_NE(told.incarnation().medium, before.medium);
  told.reached(kAgain);
  EXPECT_FALSE(told.is_replaced());
  EXPECT_EQ(told.incarnation(), before) << "nothing was at stake";
}

TEST(Continuity, OfATargetThatDoesNotTellNothingIsKnownAfterAllSessionsWereLost) {
  Continuity told;
  told.reached({});
  told.changed(0);
  told.reached({});
  EXPECT_EQ(told.losses(), 0U) << "another path, or the same one asked again";
  told.lost_touch();
  told.reached({});
  EXPECT_FALSE(told.flushed(told.mark()));
  told.lost_touch();
  told.reached({});
  EXPECT_TRUE(told.flushed(told.mark())) << "nothing was at stake";
}

}  // namespace
}  // namespace cairn::fabric
