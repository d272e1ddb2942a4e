// SPDX-License-Identifier: Apache-2.0
#include "view/box_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "view/view_testing.h"

namespace cairn::view {
namespace {

const SessionInfo kSession{.id = SessionId(1), .volume = "vol1", .box = "b1", .port = 1};
const std::string kClient = "host1";
const Origin kOrigin{.key = ClientKey(1), .client = kClient, .session = kSession};
constexpr IoVector kRead{.session = SessionId(1), .drive = 2, .bytes = 8192, .rtt = 100_us};

TEST(BoxModel, OneRequestChangesExactlyItsFiveComponents) {
  BoxModel box(BoxId(0), test_box());
  EXPECT_EQ(box.add(kOrigin, kRead, Time{(1_s).ns}, Time{(1_s).ns}), BoxModel::Verdict::kCounted);
  const auto path = path_of(BoxId(0), 1, 2);
  std::vector<ComponentView> all;
  box.append_components(Time{(1_s).ns} + 150_ms, all);
  EXPECT_EQ(all.size(), 3u * 2 + 2 * 4);
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &ComponentView::id));
  for (const ComponentView& view : all) {
    const bool is_on_path = std::ranges::find(path, view.id) != path.end();
    EXPECT_EQ(view.recency, is_on_path ? 1u : 0u);
    // It counts both ways; its bytes went out.
    EXPECT_EQ(view.traffic[0].now.ops_per_s, is_on_path ? 5u : 0u);
    EXPECT_EQ(view.traffic[0].now.bytes_per_s, 0u);
    EXPECT_EQ(view.traffic[1].now.ops_per_s, is_on_path ? 5u : 0u);
    EXPECT_EQ(view.traffic[1].now.bytes_per_s, is_on_path ? 5u * 8192 : 0u);
    EXPECT_EQ(view.traffic[1].now.sizes[1], is_on_path ? 1u : 0u);
  }
}

TEST(BoxModel, WhatCannotBeOrIsLateChangesNothing) {
  BoxModel box(BoxId(0), test_box());
  const Time now{(1_s).ns};
  IoVector vector = kRead;
  vector.drive = 4;
  EXPECT_EQ(box.add(kOrigin, vector, now, now), BoxModel::Verdict::kRefused);
  vector = kRead;
  vector.rtt = {};
  EXPECT_EQ(box.add(kOrigin, vector, now, now), BoxModel::Verdict::kRefused);
  vector.rtt = kRttMax + 1_ns;
  EXPECT_EQ(box.add(kOrigin, vector, now, now), BoxModel::Verdict::kRefused);
  vector = kRead;
  vector.bytes = kIoBytesMax + 1;
  EXPECT_EQ(box.add(kOrigin, vector, now, now), BoxModel::Verdict::kRefused);
  EXPECT_EQ(box.add(kOrigin, kRead, Time{(600_ms).ns}, now), BoxModel::Verdict::kLate);
  for (const ComponentId id : path_of(BoxId(0), 1, 2)) EXPECT_EQ(box.recency(id), 0u);
}

TEST(BoxModel, NobodyClaimsMoreThanAPortCarries) {
  BoxModel box(BoxId(0), test_box());
  const Time now{(1_s).ns};
  IoVector huge = kRead;
  huge.bytes = 16U << 20;
  int counted = 0;
  for (int i = 0; i < 1000; ++i) {
    counted += box.add(kOrigin, huge, now, now) == BoxModel::Verdict::kCounted ? 1 : 0;
  }
  // A port of 1 GB/s: a quarter of a second's worth, and the one that went beyond it.
  EXPECT_EQ(counted, 250'000'000 / (16 << 20) + 1);
  // Somebody else at the same port is not touched by that.
  const std::string other = "host2";
  const Origin honest{.key = ClientKey(2), .client = other, .session = kSession};
  EXPECT_EQ(box.add(honest, kRead, now, now), BoxModel::Verdict::kCounted);
}

TEST(LowerMedian, IsTheLowerOfTwoAndTheMiddleOfThree) {
  EXPECT_EQ(lower_median({5_us}), 5_us);
  EXPECT_EQ(lower_median({9_us, 5_us}), 5_us);
  EXPECT_EQ(lower_median({9_us, 1_us, 5_us}), 5_us);
}

// What is used, as the view says, against what was issued; batches come up to 100 ms late.
TEST(BoxModel, BandwidthIsWithinATwentiethOfTheTruth) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    TestView test;
    uint64_t bytes = 0;
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      TestClient& client = test.add("host" + number, "vol" + number, static_cast<uint16_t>(i % 2));
      client.clock_ahead = {static_cast<int64_t>(rng.below(1'000'000'000'000))};
      const Stream stream{.drive = 1,
                          .type = IoType::kRead,
                          .bytes = static_cast<uint32_t>(4096 << rng.below(6)),
                          .every = {static_cast<int64_t>(rng.between(500'000, 4'000'000))}};
      client.streams.push_back(stream);
      bytes +=
          stream.bytes * static_cast<uint64_t>((1_s).ns) / static_cast<uint64_t>(stream.every.ns);
    }
    test.run(4_s);  // the average has forgotten the beginning by then
    const View view = test.controller->view(test.now);
    const ComponentView* drive = view.find(drive_id(1));
    ASSERT_NE(drive, nullptr);
    const auto seen = static_cast<double>(drive->traffic[1].now.bytes_per_s);
    EXPECT_NEAR(seen / static_cast<double>(bytes), 1, 0.05) << seed;
    const auto average = static_cast<double>(drive->traffic[1].average_bytes_per_s);
    EXPECT_NEAR(average / static_cast<double>(bytes), 1, 0.05) << seed;
  }
}

// One port is full: all that comes through it waits, whatever the drive, and the drives have room.
TEST(BoxModel, AFullNetPipeIsNotMistakenForSlowDrives) {
  TestView test;
  TestClient& greedy = test.add("host1", "vol1", 0);
  for (uint16_t drive = 0; drive < 4; ++drive) {
    greedy.streams.push_back(
        {.drive = drive, .bytes = 131072, .every = 550_us, .rtt = 3_ms + 131_us});
  }
  TestClient& other = test.add("host2", "vol2", 1);
  other.streams.push_back({.drive = 1, .rtt = 90_us});
  test.run(3_s);  // at first it may be
  const View view = test.controller->view(test.now);
  EXPECT_GE(view.find({BoxId(0), Kind::kNetPipe, 0})->delay, 2900_us);
  EXPECT_EQ(view.find({BoxId(0), Kind::kNetPipe, 1})->delay, 0_us);
  for (uint16_t drive = 0; drive < 4; ++drive) {
    EXPECT_FALSE(view.find(drive_id(drive))->drive->is_congested) << drive;
    EXPECT_LE(view.find(drive_id(drive))->delay, 100_us) << drive;
    EXPECT_GT(view.find(drive_id(drive))->drive->headroom, 700'000'000u) << drive;
  }
}

// A liar among three says that its requests took half a second, or no time at all.
TEST(BoxModel, OneLiarOfThreeClientsDoesNotMoveADrivesDelay) {
  for (const Duration lie : {500_ms, 1_us}) {
    TestView test;
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      TestClient& client = test.add("host" + number, "vol" + number);
      client.streams.push_back({.drive = 0, .every = 1_ms, .rtt = i == 0 ? lie : 100_us});
    }
    test.run(1_s);
    const View view = test.controller->view(test.now);
    EXPECT_NEAR(view.find(drive_id(0))->delay.us(), 96, 5);
    EXPECT_FALSE(view.find(drive_id(0))->drive->is_congested);
  }
}

TEST(BoxModel, OneLiarOfTwoClientsDoesNotCongestADrive) {
  TestView test;
  test.add("host0", "vol0").streams.push_back({.rtt = 500_ms});
  test.add("host1", "vol1").streams.push_back({.rtt = 100_us});
  test.run(1_s);
  const View view = test.controller->view(test.now);
  EXPECT_EQ(view.flows.size(), 2u);
  EXPECT_FALSE(view.find(drive_id(0))->drive->is_congested);
}

}  // namespace
}  // namespace cairn::view
