// SPDX-License-Identifier: Apache-2.0
// Who gets how much of drives that several volumes share: weights, floors and caps hold, nobody
// starves, and crashes neither lose nor double a share. Drives are modelled, time is virtual, and
// what is expected holds so many epochs of 50 ms after a change.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/volume/shares_scene.h"
#include "view/analysis.h"

namespace cairn::volume_tests {
namespace {

constexpr uint64_t kRate = 100 * kMB;  // of the one drive, unless said otherwise
constexpr Duration kConverged = 40 * share::kEpoch;
constexpr Duration kMeasured = 20 * share::kEpoch;

// What each has of all that was served, against what it should have.
void expect_part(const SharesScene& scene, size_t which, double part, double within) {
  const double all = scene.all_bytes_per_s();
  EXPECT_NEAR(scene.bytes_per_s(which) / all, part, part * within) << fmt::format(
      "client {} has {:.1f} of {:.1f} MB/s", which, scene.bytes_per_s(which) / 1e6, all / 1e6);
}

void settle_and_measure(SharesScene& scene) {
  scene.run(kConverged);
  scene.mark();
  scene.run(kMeasured);
}

TEST(Shares, AreEqualHoweverManyRequestsAClientHasUnderWay) {
  SharesScene scene(1, {kRate});
  for (const size_t depth : {2, 4, 16, 64}) scene.add({.depth = depth});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  for (size_t i = 0; i < 4; ++i) expect_part(scene, i, 0.25, 0.1);
  EXPECT_GT(scene.all_bytes_per_s(), 0.95 * kRate);
  EXPECT_EQ(scene.failures(), 0U);
  // The view has seen it.
  ASSERT_NE(scene.market(), nullptr);
  EXPECT_GT(scene.market()->load(volume::MegaVolId(0)).busy, 900);
}

TEST(Shares, WithoutSwitchesWhoSendsMostGetsMost) {
  SharesScene scene(2, {kRate});
  for (const size_t depth : {4, 16, 64}) {
    scene.add({.depth = depth, .notes = false, .orders = false, .holds = false});
  }
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  expect_part(scene, 0, 4.0 / 84, 0.15);
  expect_part(scene, 1, 16.0 / 84, 0.15);
  expect_part(scene, 2, 64.0 / 84, 0.15);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(scene.steering(i).sent, 0U);
}

TEST(Shares, FollowWeightsAndWeightsThatChangeInUse) {
  SharesScene scene(3, {kRate});
  for (const uint32_t weight : {1, 2, 4}) scene.add({.terms = {.weight = weight}, .depth = 32});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  for (size_t i = 0; i < 3; ++i) expect_part(scene, i, (1U << i) / 7.0, 0.1);
  scene.set_terms(0, {.weight = 4});
  scene.set_terms(2, {.weight = 1});
  settle_and_measure(scene);
  for (size_t i = 0; i < 3; ++i) expect_part(scene, i, (4U >> i) / 7.0, 0.1);
}

TEST(Shares, AFloorHoldsAgainstFourNoisyNeighbours) {
  SharesScene scene(4, {kRate});
  scene.add({.terms = {.floor = 60 * kMB}, .depth = 32});
  for (int i = 0; i < 4; ++i) scene.add({.depth = 64, .bytes = 65536});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  EXPECT_NEAR(scene.bytes_per_s(0), 60.0 * kMB, 6.0 * kMB);
  for (size_t i = 1; i < 5; ++i) EXPECT_GT(scene.bytes_per_s(i), 7.0 * kMB);
  // What it does not use, others have.
  scene.use(0, false);
  settle_and_measure(scene);
  EXPECT_GT(scene.all_bytes_per_s(), 0.95 * kRate);
}

TEST(Shares, ACapHoldsAlsoForAVolumeThatIsAlone) {
  SharesScene scene(5, {kRate});
  scene.add({.terms = {.cap = 20 * kMB}, .depth = 32});
  scene.add({.depth = 32});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use(0);
  settle_and_measure(scene);
  EXPECT_NEAR(scene.bytes_per_s(0), 20.0 * kMB, 2.0 * kMB);
  scene.use(1);
  settle_and_measure(scene);
  EXPECT_NEAR(scene.bytes_per_s(0), 20.0 * kMB, 2.0 * kMB);
  EXPECT_GT(scene.bytes_per_s(1), 70.0 * kMB);
}

TEST(Shares, AVolumeThatIsAloneHasAllOfADriveWhateverTheViewThinksOfIt) {
  SharesScene scene(6, {kRate});
  scene.add({.depth = 64, .writes = true});
  scene.add({.depth = 1});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use(0);
  settle_and_measure(scene);
  // A written byte takes twice as long as one that is read.
  EXPECT_GT(scene.bytes_per_s(0), 0.95 * kRate / 2);
}

TEST(Shares, AreOfAllThatADriveDoesNotOfWhatItPromises) {
  for (const bool writes : {false, true}) {
    SharesScene scene(12, {kRate});
    scene.promise(20);
    for (const size_t depth : {8, 16, 32, 64}) scene.add({.depth = depth, .writes = writes});
    ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
    scene.use_all();
    settle_and_measure(scene);
    for (size_t i = 0; i < 4; ++i) expect_part(scene, i, 0.25, 0.15);
    // A written byte takes twice as long as one that is read.
    EXPECT_GT(scene.all_bytes_per_s(), 0.8 * kRate / (writes ? 2 : 1)) << "writes: " << writes;
  }
}

TEST(Shares, OfThoseThatAreIdleAreNotKeptForThemWhenNoArbiterAnswers) {
  SharesScene scene(13, {kRate});
  scene.add({.depth = 32});
  for (int i = 0; i < 4; ++i) scene.add({.depth = 32});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use(0);
  settle_and_measure(scene);
  EXPECT_GT(scene.bytes_per_s(0), 0.9 * kRate);
  scene.arbiter(0).kill();
  scene.run(10_s);
  scene.mark();
  scene.run(kMeasured);
  EXPECT_GT(scene.bytes_per_s(0), 0.9 * kRate);
}

TEST(Shares, WhoTakesPartInNothingIsNamed) {
  SharesScene scene(14, {kRate});
  scene.add({.depth = 16});
  scene.add({.depth = 16});
  scene.add({.depth = 64, .holds = false});
  scene.add({.depth = 16, .notes = false, .orders = false, .holds = false});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  ASSERT_NE(scene.market(), nullptr);
  using Offence = view::Offender::Offence;
  std::map<std::string, Offence> named;
  for (const view::Offender& each :
       scene.market()->controller()->view(scene.cluster().now()).offenders) {
    named[each.volume] = each.offence;
  }
  const std::map<std::string, Offence> expected = {{"v2", Offence::kAsksForNothing},
                                                   {"v3", Offence::kTellsNothing}};
  EXPECT_EQ(named, expected);
}

TEST(Shares, NobodyStarves) {
  SharesScene scene(7, {kRate});
  scene.add({.depth = 1, .bytes = 4096});
  for (int i = 0; i < 3; ++i) scene.add({.terms = {.weight = 100}, .depth = 64});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  // An epoch until it is granted something, and what the drive has before it.
  EXPECT_LT(scene.slowest(0), 4 * share::kEpoch);
  EXPECT_GT(scene.bytes_per_s(0), 0.8 * kRate / 301);
}

TEST(Shares, ASmallReaderHardlyNoticesLargeWritersThatAreHeldToTheirShare) {
  Duration with;
  Duration without;
  for (const bool is_on : {true, false}) {
    SharesScene scene(8, {kRate});
    scene.add({.depth = 1,
               .bytes = 4096,
               .pause = 1_ms,
               .notes = is_on,
               .orders = is_on,
               .holds = is_on});
    for (int i = 0; i < 3; ++i) {
      scene.add({.depth = 32, .writes = true, .notes = is_on, .orders = is_on, .holds = is_on});
    }
    ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
    scene.use_all();
    settle_and_measure(scene);
    (is_on ? with : without) = scene.median(0);
  }
  EXPECT_LT(2 * with.ns, without.ns) << with.ns << " of " << without.ns;
}

TEST(Shares, OfAClientThatDiesGoesToOthersAndComesBackOnce) {
  SharesScene scene(9, {kRate});
  for (int i = 0; i < 4; ++i) scene.add({.depth = 32});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  for (size_t i = 0; i < 4; ++i) expect_part(scene, i, 0.25, 0.1);
  scene.client(0).kill();
  settle_and_measure(scene);
  EXPECT_EQ(scene.bytes_per_s(0), 0.0);
  for (size_t i = 1; i < 4; ++i) expect_part(scene, i, 1.0 / 3, 0.1);
  EXPECT_GT(scene.all_bytes_per_s(), 0.95 * kRate);
  scene.client(0).restart();
  scene.run(3_s);
  settle_and_measure(scene);
  for (size_t i = 0; i < 4; ++i) expect_part(scene, i, 0.25, 0.1);
  EXPECT_GT(scene.all_bytes_per_s(), 0.95 * kRate);
}

TEST(Shares, StayWhenNoArbiterAnswersAndAreRightAgainWithTheNext) {
  SharesScene scene(10, {kRate}, 2);
  for (const uint32_t weight : {1, 3}) scene.add({.terms = {.weight = weight}, .depth = 32});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  settle_and_measure(scene);
  expect_part(scene, 0, 0.25, 0.1);
  const std::string host = scene.market() != nullptr ? "leads" : "none";
  ASSERT_EQ(host, "leads");
  // Both are away: the last shares, which become equal.
  scene.arbiter(0).kill();
  scene.arbiter(1).kill();
  scene.run(4 * share::kEpoch);
  scene.mark();
  scene.run(4 * share::kEpoch);
  EXPECT_LT(scene.bytes_per_s(0) / scene.all_bytes_per_s(), 0.42);
  EXPECT_GT(scene.all_bytes_per_s(), 0.85 * kRate);
  scene.run(5_s);
  scene.mark();
  scene.run(kMeasured);
  expect_part(scene, 0, 0.5, 0.1);
  EXPECT_GT(scene.all_bytes_per_s(), 0.85 * kRate);
  scene.arbiter(1).restart();
  scene.run(5_s);
  settle_and_measure(scene);
  expect_part(scene, 0, 0.25, 0.1);
  expect_part(scene, 1, 0.75, 0.1);
  EXPECT_EQ(scene.failures(), 0U);
}

TEST(Shares, TheViewSaysWhoSlowsAVolumeDown) {
  SharesScene scene(11, {kRate});
  scene.add({.depth = 1, .bytes = 4096});
  scene.add({.depth = 64, .writes = true});
  ASSERT_TRUE(scene.open_all()) << scene.cluster().report();
  scene.use_all();
  scene.run(1_s);
  ASSERT_NE(scene.market(), nullptr);
  const view::View view = scene.market()->controller()->view(scene.cluster().now());
  const view::Why why = view::explain(view, "v0");
  ASSERT_FALSE(why.causes.empty());
  EXPECT_EQ(view.name_of(why.causes[0].component), "b1/d0");
  ASSERT_TRUE(why.causes[0].shared_with.has_value());
  EXPECT_EQ(why.causes[0].shared_with->volume, "v1");
  EXPECT_EQ(why.causes[0].shared_with->type, view::IoType::kWrite);
  EXPECT_NE(text(view, why).find("shared with v1's 64 KiB writes"), std::string::npos)
      << text(view, why);
}

}  // namespace
}  // namespace cairn::volume_tests
