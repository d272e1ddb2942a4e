// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/scene.h"

#include <gtest/gtest.h>

#include "bench/leapio/channels.h"

namespace cairn::bench::leapio {
namespace {

Stage small_stage() {
  return {.drive = std::make_shared<const flash::Parameters>(),
          .drive_bytes = 1_GiB,
          .used_bytes = 1_GiB,
          .seconds = 0.002};
}

TEST(Scene, SameSceneSameLatencies) {
  const Stage stage = small_stage();
  const Scene scene{.stack = "priority(stripe({}, {}))", .remote = true};
  const Result<Played> one = play(scene, stage);
  const Result<Played> other = play(scene, stage);
  ASSERT_TRUE(one.has_value()) << one.error().text();
  ASSERT_TRUE(other.has_value());
  EXPECT_NEAR(static_cast<double>(one->lookup_us.size()), 80, 30);
  EXPECT_EQ(one->lookup_us, other->lookup_us);
  EXPECT_EQ(one->batch_bytes_per_second, 0);
}

TEST(Scene, BatchIsInTheWayOfLookups) {
  const Stage stage = small_stage();
  const Result<Played> alone = play({}, stage);
  const Result<Played> both = play({.batch = true}, stage);
  ASSERT_TRUE(alone.has_value() && both.has_value());
  EXPECT_GT(both->percentile_us(0.5), alone->percentile_us(0.5));
  EXPECT_GT(both->batch_bytes_per_second, 0);
}

// Holes of a map would be answered at once, and pages in the drive's cache nearly so.
TEST(Scene, AVersionIsReadFromFlash) {
  const Stage stage = small_stage();
  const Result<Played> plain = play({}, stage);
  const Result<Played> version = play({.stack = "snapshot({})", .pinned = true}, stage);
  ASSERT_TRUE(plain.has_value() && version.has_value());
  EXPECT_NEAR(version->percentile_us(0.5), plain->percentile_us(0.5),
              plain->percentile_us(0.5) * 0.1);
}

// A mirror that made its legs equal after the index was written would leave it in their caches.
TEST(Scene, AMirrorIsReadFromFlash) {
  Stage stage = small_stage();
  stage.seconds = 0.1;
  const double rate = 500;  // no lookup waits for another
  const Result<Played> plain = play({.lookups_per_second = rate}, stage);
  const Result<Played> mirror =
      play({.stack = "mirror({}, {})", .lookups_per_second = rate}, stage);
  ASSERT_TRUE(plain.has_value() && mirror.has_value());
  EXPECT_NEAR(mirror->percentile_us(0.5), plain->percentile_us(0.5),
              plain->percentile_us(0.5) * 0.1);
}

TEST(Scene, TheWriterOfTheNextVersionIsInTheWayOfReadersOfThis) {
  const Stage stage = small_stage();
  const Result<Played> alone = play({.stack = "snapshot({})", .pinned = true}, stage);
  const Result<Played> both = play({.stack = "snapshot({})", .batch = true, .pinned = true}, stage);
  const Result<Played> ordered =
      play({.stack = "snapshot(priority({}))", .batch = true, .pinned = true}, stage);
  ASSERT_TRUE(alone.has_value() && both.has_value() && ordered.has_value());
  EXPECT_GT(both->percentile_us(0.5), alone->percentile_us(0.5));
  EXPECT_LT(ordered->percentile_us(0.5), both->percentile_us(0.5));
  EXPECT_GT(ordered->batch_bytes_per_second, 0);
}

TEST(Scene, AVersionNeedsAServiceThatHasSome) {
  EXPECT_FALSE(play({.pinned = true}, small_stage()).has_value());
}

TEST(Scene, AStackThatIsNoneIsAnError) {
  EXPECT_FALSE(play({.stack = "nothing({})"}, small_stage()).has_value());
}

TEST(Percentile, IsTheValueThatSoManyReach) {
  const Played played{.lookup_us = {4, 1, 3, 2}};
  EXPECT_EQ(played.percentile_us(0.5), 2);
  EXPECT_EQ(played.percentile_us(0.99), 4);
  EXPECT_EQ(Played{}.percentile_us(0.5), 0);
}

TEST(Channels, OfTheirOwnKeepANeighbourAway) {
  flash::Parameters parameters;
  parameters.ideal_mapping = true;  // the table of pages is the drive's, and lies on all channels
  Stage stage = small_stage();
  stage.drive = std::make_shared<const flash::Parameters>(parameters);
  stage.drive_bytes = 16_GiB;
  stage.seconds = 0.05;
  const auto p99 = [&](const Tenancy& tenancy) {
    const Result<Played> played = read_beside(tenancy, stage);
    EXPECT_TRUE(played.has_value()) << played.error().text();
    return played ? played->percentile_us(0.99) : 0;
  };
  const double alone = p99({.apart = true});
  EXPECT_GT(alone, 0);
  EXPECT_GT(p99({.neighbour = true}), alone * 1.5);
  EXPECT_LT(p99({.neighbour = true, .apart = true}), alone * 1.1);
}

TEST(Channels, ADriveThatCannotBeMadeIsAnError) {
  Stage stage = small_stage();
  stage.drive_bytes = 1024_GiB;
  EXPECT_FALSE(read_beside({}, stage).has_value());
}

}  // namespace
}  // namespace cairn::bench::leapio
