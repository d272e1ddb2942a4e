// SPDX-License-Identifier: Apache-2.0
#include "rack/choose.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace cairn::rack {
namespace {

Offer offer(std::string box, uint64_t mib, std::string shelf = "d0") {
  return {.box = std::move(box),
          .shelf = std::move(shelf),
          .place = {.address = "127.0.0.1:4420", .nqn = "nqn.2026-11.io.cairn:box"},
          .spare = {.bytes = mib * kUnit, .iops = 1000, .bandwidth = 100 * kUnit}};
}

Wish wish(Raid raid, uint64_t mib, size_t legs = 0) {
  return {.raid = raid, .amount = {.bytes = mib * kUnit}, .legs = legs};
}

TEST(Choose, TakesTheClosestFitAndLeavesLargeOffersWhole) {
  const std::vector<Offer> offers = {offer("big", 1000), offer("b", 120), offer("a", 110)};
  EXPECT_EQ(choose(offers, wish(Raid::kMirror, 100)), (std::vector<size_t>{2, 1}));
}

TEST(Choose, MirrorsNeverOnOneBox) {
  const std::vector<Offer> offers = {offer("a", 200, "d0"), offer("a", 200, "d1")};
  const auto chosen = choose(offers, wish(Raid::kMirror, 100));
  ASSERT_FALSE(chosen);
  EXPECT_NE(chosen.error().find("on a box of its own"), std::string::npos) << chosen.error();
}

TEST(Choose, StripesOverShelvesOfOneBoxWhereThereAreNoOthers) {
  const std::vector<Offer> offers = {offer("a", 200, "d0"), offer("a", 200, "d1")};
  EXPECT_EQ(choose(offers, wish(Raid::kStripe, 100)), (std::vector<size_t>{0, 1}));
}

TEST(Choose, PrefersOtherBoxesForAStripe) {
  const std::vector<Offer> offers = {offer("a", 60, "d0"), offer("a", 61, "d1"), offer("b", 900)};
  EXPECT_EQ(choose(offers, wish(Raid::kStripe, 100)), (std::vector<size_t>{0, 2}));
}

TEST(Choose, StripesOverMoreLegsWhereTwoAreTooSmall) {
  const std::vector<Offer> offers = {offer("a", 40), offer("b", 40), offer("c", 40)};
  EXPECT_EQ(choose(offers, wish(Raid::kStripe, 120)), (std::vector<size_t>{0, 1, 2}));
  EXPECT_FALSE(choose(offers, wish(Raid::kStripe, 120, 2)));
}

TEST(Choose, CountsRequestsAndBytesPerSecond) {
  std::vector<Offer> offers = {offer("a", 200), offer("b", 200)};
  Wish fast = wish(Raid::kMirror, 100);
  fast.amount.iops = 1000;
  EXPECT_TRUE(choose(offers, fast));
  fast.amount.iops = 1001;
  EXPECT_FALSE(choose(offers, fast));
  fast.raid = Raid::kStripe;  // each leg serves half of them
  EXPECT_TRUE(choose(offers, fast));
  offers[1].spare.bandwidth = 0;
  fast.amount.bandwidth = 10;
  EXPECT_FALSE(choose(offers, fast));
}

TEST(Choose, SaysWhatIsMissing) {
  EXPECT_EQ(choose({}, wish(Raid::kMirror, 1)).error(), "no box offers any space");
  EXPECT_EQ(choose({}, wish(Raid::kStripe, 0)).error(), "a drive has a size, of less than 64 PiB");
  EXPECT_EQ(choose({}, wish(Raid::kMirror, 1, 1)).error(), "a drive of this kind has 2 to 8 legs");
  EXPECT_EQ(choose({}, wish(Raid::kStripe, 1, 9)).error(), "a drive of this kind has 1 to 8 legs");
}

rc::Gen<std::vector<Offer>> offers_gen() {
  const auto one = rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 5), rc::gen::inRange(0, 3),
                                               rc::gen::inRange(0, 60), rc::gen::inRange(0, 30)),
                                [](const auto& drawn) {
                                  const auto [box, shelf, mib, iops] = drawn;
                                  Offer made =
                                      offer("box" + std::to_string(box), static_cast<uint64_t>(mib),
                                            "d" + std::to_string(shelf));
                                  made.spare.iops = static_cast<uint64_t>(iops);
                                  return made;
                                });
  return rc::gen::container<std::vector<Offer>>(one);
}

TEST(ChooseProperty, NeverTakesMoreThanWasOfferedNorTwoCopiesOnOneBox) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<Offer> offers = *offers_gen();
    Wish asked = wish(*rc::gen::element(Raid::kStripe, Raid::kMirror),
                      static_cast<uint64_t>(*rc::gen::inRange(1, 100)),
                      static_cast<size_t>(*rc::gen::inRange(0, 5)));
    asked.amount.iops = static_cast<uint64_t>(*rc::gen::inRange(0, 40));
    const auto chosen = choose(offers, asked);
    if (!chosen) return;
    RC_ASSERT(asked.legs == 0 || chosen->size() == asked.legs);
    const Amount leg = leg_amount(asked, chosen->size());
    RC_ASSERT(check_amount(leg).has_value());
    const uint64_t whole = asked.raid == Raid::kMirror ? leg.bytes : leg.bytes * chosen->size();
    RC_ASSERT(whole >= asked.amount.bytes);
    std::set<std::string> boxes;
    std::set<std::pair<std::string, std::string>> shelves;
    for (const size_t each : *chosen) {
      RC_ASSERT(each < offers.size());
      RC_ASSERT(leg.fits(offers[each].spare));
      boxes.insert(offers[each].box);
      RC_ASSERT(shelves.insert({offers[each].box, offers[each].shelf}).second);
    }
    if (asked.raid == Raid::kMirror) RC_ASSERT(boxes.size() == chosen->size());
  }));
}

TEST(ChooseProperty, TheOrderOfOffersDoesNotMatter) {
  EXPECT_TRUE(rc::check([] {
    std::map<std::pair<std::string, std::string>, Offer> by_name;
    for (Offer& each : *offers_gen()) by_name[{each.box, each.shelf}] = each;
    std::vector<Offer> offers;
    for (const auto& [name, each] : by_name) offers.push_back(each);
    std::vector<Offer> reversed(offers.rbegin(), offers.rend());
    const Wish asked = wish(*rc::gen::element(Raid::kStripe, Raid::kMirror),
                            static_cast<uint64_t>(*rc::gen::inRange(1, 100)));
    const auto one = choose(offers, asked);
    const auto other = choose(reversed, asked);
    RC_ASSERT(one.has_value() == other.has_value());
    for (size_t i = 0; one && i < one->size(); ++i) {
      RC_ASSERT(offers[(*one)[i]] == reversed[(*other)[i]]);
    }
  }));
}

}  // namespace
}  // namespace cairn::rack
