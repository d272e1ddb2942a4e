// SPDX-License-Identifier: Apache-2.0
#include "trace/shape.h"

#include <gtest/gtest.h>

namespace cairn::trace {
namespace {

TEST(TraceShape, TimeIsStretched) {
  Shaper shaper({.time_scale = 2.5});
  EXPECT_EQ(shaper.shape({.arrival = 100, .bytes = 512}).arrival, 250);
}

TEST(TraceShape, AddressesWrapIntoTheSpaceAndRequestsStayWhole) {
  Shaper shaper({.space = 1 << 20});
  EXPECT_EQ(shaper.shape({.offset = (1 << 20) + 4096, .bytes = 512}).offset, 4096U);
  const Record last = shaper.shape({.offset = (1 << 20) - 512, .bytes = 4096});
  EXPECT_EQ(last.offset + last.bytes, 1U << 20);
}

TEST(TraceShape, VolumesGoToTargetsInTurn) {
  Shaper shaper({.targets = 3});
  EXPECT_EQ(shaper.shape({.bytes = 512, .volume = 4}).target, 1U);
  EXPECT_EQ(shaper.shape({.bytes = 512, .volume = 4, .target = 2}).target, 2U);
}

TEST(TraceShape, StripesOfAVolumeGoToTargetsInTurn) {
  Shaper shaper({.targets = 2, .placement = Placement::kStriped, .stripe = 1024});
  const Record third = shaper.shape({.offset = 2 * 1024 + 512, .bytes = 512});
  EXPECT_EQ(third.target, 0U);
  EXPECT_EQ(third.offset, 1024U + 512U);
  EXPECT_EQ(shaper.shape({.offset = 1024, .bytes = 512}).target, 1U);
}

TEST(TraceShape, TheLeastLoadedInitiatorOfADirectionSends) {
  Shaper shaper({.initiators = 2});
  EXPECT_EQ(shaper.shape({.bytes = 4096}).initiator, 0U);
  EXPECT_EQ(shaper.shape({.bytes = 512}).initiator, 1U);
  EXPECT_EQ(shaper.shape({.bytes = 512}).initiator, 1U);
  EXPECT_EQ(shaper.shape({.bytes = 512, .write = true}).initiator, 0U);
}

TEST(TraceShape, InitiatorsTakeTurnsOrBelongToVolumes) {
  Shaper turns({.initiators = 2, .choice = Choice::kRoundRobin});
  EXPECT_EQ(turns.shape({.bytes = 512}).initiator, 0U);
  EXPECT_EQ(turns.shape({.bytes = 512}).initiator, 1U);
  EXPECT_EQ(turns.shape({.bytes = 512}).initiator, 0U);
  Shaper owners({.initiators = 4, .choice = Choice::kByVolume});
  EXPECT_EQ(owners.shape({.bytes = 512, .volume = 6}).initiator, 2U);
}

}  // namespace
}  // namespace cairn::trace
