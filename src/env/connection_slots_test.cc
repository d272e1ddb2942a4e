// SPDX-License-Identifier: Apache-2.0
#include "env/connection_slots.h"

#include <gtest/gtest.h>

#include <deque>

namespace cairn::env {
namespace {

const Time kStart = Time{} + 1000_s;
const Address kHere = Address::ip4(10, 0, 0, 1, 1000);
const Address kThere = Address::ip4(10, 0, 0, 2, 1000);

class Slots : public ::testing::Test {
 protected:
  // Whether a new connection of this address comes in.
  bool comes(const Address& from, Time now) {
    ConnectionSlots::Slot& slot = all.emplace_back();
    last = slots.enter(slot, from, now);
    return slot.is_in();
  }
  void TearDown() override {
    for (ConnectionSlots::Slot& slot : all) slots.leave(slot);
    EXPECT_EQ(slots.connections(), 0u);
  }

  std::deque<ConnectionSlots::Slot> all;
  ConnectionSlots slots{{.connections_max = 16, .unproven_max = 4, .reserved = 4}};
  ConnectionSlots::Entry last;
};

TEST_F(Slots, AnAddressHasFewThatHaveProvenNothing) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(comes(kHere, kStart));
  EXPECT_FALSE(comes(kHere, kStart));
  EXPECT_NE(last.refused, nullptr);
  EXPECT_TRUE(comes(kThere, kStart)) << "another address";
  slots.leave(all.front());
  EXPECT_TRUE(comes(kHere, kStart));
}

TEST_F(Slots, WhoHasProvenItselfIsCountedNoMore) {
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(comes(kHere, kStart)) << i;
    slots.prove(all.back(), kStart);
  }
  EXPECT_EQ(slots.connections(), 12u);
}

TEST_F(Slots, WhoProvesNothingForLongMakesRoomForTheNext) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(comes(kHere, kStart + 1_ms * i));
  const Time later = kStart + ConnectionSlots::kUnprovenTime;
  EXPECT_TRUE(comes(kHere, later));
  EXPECT_EQ(last.evicted, &all[0]) << "the oldest";
  EXPECT_FALSE(comes(kHere, later)) << "the next has not been here for long enough";
  slots.prove(all[0], later);  // too late: it is about to end
  slots.leave(all[0]);
  EXPECT_TRUE(comes(kHere, later + 1_ms));
  EXPECT_EQ(last.evicted, &all[1]);
}

TEST_F(Slots, AtAKnownAddressTheOldestMakesRoomHoweverYoungItIs) {
  EXPECT_TRUE(comes(kHere, kStart));
  slots.prove(all.back(), kStart);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(comes(kHere, kStart));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(comes(kHere, kStart)) << i;
    EXPECT_EQ(last.evicted, &all[1 + i]) << "the oldest, which has proven nothing";
  }
  // Those who are being ended count until they have left, but not against others.
  EXPECT_EQ(slots.connections(), 9u);
  EXPECT_FALSE(comes(kHere, kStart)) << "as many are leaving as may be there";
  EXPECT_TRUE(comes(kThere, kStart));
  slots.leave(all[1]);
  EXPECT_TRUE(comes(kHere, kStart));
  EXPECT_EQ(last.evicted, &all[5]);
}

TEST_F(Slots, TheLastPlacesAreForAddressesThatAreKnown) {
  EXPECT_TRUE(comes(kHere, kStart));
  slots.prove(all.back(), kStart);
  slots.leave(all.back());
  const auto stranger = [](int i) { return Address::ip4(10, 1, 0, static_cast<uint8_t>(i), 1); };
  int strangers = 0;
  while (strangers < 100 && comes(stranger(strangers), kStart)) ++strangers;
  EXPECT_EQ(strangers, 12);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(comes(kHere, kStart)) << i;
  EXPECT_EQ(slots.connections(), 16u);
  EXPECT_FALSE(comes(kHere, kStart + 10_s)) << "connections_max";
}

TEST_F(Slots, AddressesAreToldApartAsOwnersAre) {
  const Address first = *Address::parse("[2001:db8:1:2::1]:1");
  const Address second = *Address::parse("[2001:db8:1:2:ffff::9]:2");
  const Address other = *Address::parse("[2001:db8:1:3::1]:1");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(comes(i % 2 == 0 ? first : second, kStart));
  EXPECT_FALSE(comes(first, kStart));
  EXPECT_TRUE(comes(other, kStart));
  // IPv4 through an IPv6 socket is IPv4.
  EXPECT_EQ(key_of(*Address::parse("[::ffff:10.0.0.1]:7")), key_of(kHere));
  EXPECT_NE(key_of(*Address::parse("[::ffff:10.0.0.2]:7")), key_of(kHere));
}

}  // namespace
}  // namespace cairn::env
