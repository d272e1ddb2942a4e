// SPDX-License-Identifier: Apache-2.0
// Volumes that nobody has open get what they lack, and are given up to whoever asks.
#include "arbiter/healer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "arbiter/arbiter_testing.h"
#include "testing/stack/stacks.h"

namespace cairn::arbiter {
namespace {

using drive::read_value;
using drive::run_in_sim;
using drive::write_value;
using task::Task;
using volume::VolumeDrive;

constexpr uint64_t kBlocks = kTestExtent / volume::TestMedium::kBlock;  // of an extent
constexpr uint32_t kExtents = 6;

HealerOptions options_of(uint64_t rebuild_rate) {
  return {.name = "arbiter.1",
          .look = 200_ms,
          .probe = 500_ms,
          .probe_limit = 200_ms,
          .lost_after = 3_s,
          .pause = 2_s,
          .rebuild_rate = rebuild_rate,
          .volume = {.retry = 50_ms, .sweep = 200_ms}};
}

// Four drives, an arbiter and its healer, and clients of "v".
struct Scene {
  Scene(env::Env& its_env, uint64_t rebuild_rate)
      : env(its_env),
        store(meta::memory_store(its_env)),
        media(test_media(4, 17)),
        source(its_env, media),
        fence(media),
        healer(its_env, source, options_of(rebuild_rate)),
        arbiter(its_env, *store, media, fence, "arbiter.1", nullptr, &healer) {}

  Task<void> sleep(Duration time) {
    const Result<void> slept = co_await task::sleep_for(env, time);
    EXPECT_TRUE(slept);
  }
  Task<std::unique_ptr<VolumeDrive>> open(std::string client) {
    Result<std::unique_ptr<VolumeDrive>> opened = co_await VolumeDrive::open(
        env, arbiter.host(), source, "v", {.client = client, .retry = 50_ms, .sweep = 200_ms});
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().text());
    co_return opened ? std::move(*opened) : nullptr;
  }
  // A volume with something in each extent, which "one" has open.
  Task<std::unique_ptr<VolumeDrive>> make_volume(uint32_t replicas) {
    const Result<VolumeRecord> made = co_await arbiter.use()->create(
        {.name = "v", .bytes = kExtents * kTestExtent, .replicas = replicas});
    EXPECT_TRUE(made);
    std::unique_ptr<VolumeDrive> drive = co_await open("one");
    for (uint32_t extent = 0; drive && extent < kExtents; ++extent) {
      co_await write_value(*drive, extent * kBlocks, static_cast<uint8_t>(extent + 1));
    }
    co_return drive;
  }
  Task<void> expect_values() {
    auto drive = co_await open("last");
    for (uint32_t extent = 0; drive && extent < kExtents; ++extent) {
      const int value = co_await read_value(*drive, extent * kBlocks);
      EXPECT_EQ(value, static_cast<int>(extent + 1));
    }
    if (drive) co_await drive->close();
  }
  const Volume& volume() { return *const_cast<Pool&>(arbiter.use()->pool()).volume("v"); }
  volume::TestMedium& medium_of(const volume::Leg& leg) {
    return *media.at(arbiter.use()->pool().members().at(leg.mega_vol).info.uri);
  }
  // All extents that have space have as many legs in order as they should.
  bool is_whole() {
    const Volume& now = volume();
    return std::ranges::all_of(now.table, [&](const MapEntry& entry) {
      return !entry.is_mapped() ||
             (entry.in_sync() == now.record.replicas && entry.size() == now.record.replicas);
    });
  }

  env::Env& env;
  std::unique_ptr<meta::Store> store;
  volume::TestMedia media;
  volume::TestSource source;
  TestFence fence;
  Healer healer;
  TestArbiter arbiter;
};

template <class Body>
void run_scene(Body body, uint64_t rebuild_rate = 0) {
  run_in_sim([body, rebuild_rate](env::Env& env) -> Task<void> {
    return [](env::Env& world, Body test, uint64_t rate) -> Task<void> {
      Scene scene(world, rate);
      const bool leads = co_await scene.arbiter.wait_until_leading();
      EXPECT_TRUE(leads);
      co_await scene.arbiter.add_all(4);
      task::Gate healing;
      healing.spawn(scene.healer.run(scene.arbiter.host()));
      co_await test(scene);
      EXPECT_EQ(audit(scene.arbiter.use()->pool(), scene.media, false), "");
      scene.healer.stop();
      co_await healing.close();
      co_await scene.arbiter.close();
      co_await scene.store->close();
    }(env, body, rebuild_rate);
  });
}

// What a holder wrote while a drive was away, when it has left before the drive was back.
Task<void> close_with_stale_legs(Scene& scene) {
  auto drive = co_await scene.make_volume(2);
  CO_ASSERT_TRUE(drive);
  volume::TestMedium& away = scene.medium_of(scene.volume().table[1].leg(0));
  away.is_down = true;
  for (uint32_t extent = 0; extent < kExtents; ++extent) {
    co_await write_value(*drive, extent * kBlocks, static_cast<uint8_t>(extent + 1));
  }
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await drive->close();
  EXPECT_FALSE(scene.is_whole());
  away.is_down = false;
}

Task<void> heals_stale_legs(Scene& scene) {
  co_await close_with_stale_legs(scene);
  co_await scene.sleep(6_s);
  EXPECT_TRUE(scene.is_whole());
  EXPECT_EQ(scene.healer.counters().healed, 1U);
  EXPECT_EQ(scene.volume().record.holder, "") << "it gave the volume back";
  EXPECT_TRUE(scene.volume().record.is_clean);
  co_await scene.expect_values();
  co_await scene.sleep(10_s);
  EXPECT_EQ(scene.healer.counters().opened, 1U) << "what lacks nothing is left alone";
}
TEST(Healer, AVolumeThatNobodyHasOpenGetsWhatItsLegsLack) { run_scene(heals_stale_legs); }

Task<void> drains(Scene& scene) {
  auto drive = co_await scene.make_volume(1);
  CO_ASSERT_TRUE(drive);
  co_await drive->close();
  const MegaVolId home = scene.volume().table[1].leg(0).mega_vol;
  const Result<void> drained = co_await scene.arbiter.use()->drain(home, true);
  EXPECT_TRUE(drained);
  co_await scene.sleep(10_s);
  EXPECT_EQ(scene.arbiter.use()->pool().members().at(home).legs, 0U);
  EXPECT_TRUE(scene.is_whole());
  co_await scene.expect_values();
}
TEST(Healer, AVolumeThatNobodyHasOpenLeavesADriveThatIsDrained) { run_scene(drains); }

Task<void> loses_drive(Scene& scene) {
  auto drive = co_await scene.make_volume(3);
  CO_ASSERT_TRUE(drive);
  co_await drive->close();
  const MegaVolId lost = scene.volume().table[1].leg(1).mega_vol;
  scene.medium_of(scene.volume().table[1].leg(1)).is_down = true;
  co_await scene.sleep(2_s);
  EXPECT_EQ(scene.healer.counters().opened, 0U) << "it may come back";
  co_await scene.sleep(15_s);
  EXPECT_EQ(scene.arbiter.use()->pool().members().at(lost).legs, 0U);
  EXPECT_TRUE(scene.is_whole());
  co_await scene.expect_values();
}
TEST(Healer, AVolumeThatNobodyHasOpenIsRebuiltWhenADriveIsLost) { run_scene(loses_drive); }

Task<void> empties_drive(Scene& scene) {
  auto drive = co_await scene.make_volume(2);
  CO_ASSERT_TRUE(drive);
  co_await drive->close();
  const MegaVolId lost = scene.volume().table[1].leg(0).mega_vol;
  scene.medium_of(scene.volume().table[1].leg(0)).empty();
  co_await scene.sleep(10_s);
  EXPECT_EQ(scene.arbiter.use()->pool().members().at(lost).legs, 0U);
  EXPECT_TRUE(scene.is_whole());
  co_await scene.expect_values();
}
TEST(Healer, ADriveThatCameBackEmptyIsLostAtOnce) { run_scene(empties_drive); }

Task<void> gives_up(Scene& scene) {
  co_await close_with_stale_legs(scene);
  for (int i = 0; i < 1000 && scene.healer.counters().opened == 0; ++i) co_await scene.sleep(10_ms);
  co_await scene.sleep(100_ms);
  EXPECT_TRUE(is_tenant(scene.volume().record.holder));
  const Time asked = scene.env.now();
  auto drive = co_await scene.open("two");
  CO_ASSERT_TRUE(drive);
  EXPECT_LT((scene.env.now() - asked).ns, Duration(1_s).ns);
  EXPECT_EQ(scene.healer.counters().healed, 0U);
  co_await write_value(*drive, 0, 1);
  co_await scene.sleep(5_s);
  EXPECT_TRUE(drive->is_held()) << "it does not take it back";
  co_await drive->close();
  // While it heals again the volume can be changed by operators.
  for (int i = 0; i < 2000 && scene.healer.counters().opened < 2; ++i) co_await scene.sleep(10_ms);
  if (scene.healer.counters().opened > 1) {
    const Result<void> gone = co_await scene.arbiter.use()->destroy("v", false);
    EXPECT_TRUE(gone) << (gone ? "" : gone.error().text());
  }
}
TEST(Healer, GivesAVolumeUpAtOnceToWhoeverAsksForIt) { run_scene(gives_up, 2 * kTestExtent / 10); }

// Whoever had the volume died: legs are made equal although nobody opens it.
Task<void> dead_holder(Scene& scene) {
  auto drive = co_await scene.make_volume(3);
  CO_ASSERT_TRUE(drive);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await write_value(*drive, 0, 7);
  // Another one takes it over, and dies before it has done anything.
  const Result<volume::Opened> taken =
      co_await scene.arbiter.host().open({.volume = "v", .client = "two", .take_over = true}, {});
  CO_ASSERT_TRUE(taken);
  const MapEntry entry = scene.volume().table[1];
  const std::vector<std::byte> half(volume::TestMedium::kBlock, std::byte{9});
  scene.medium_of(entry.leg(0)).write(entry.leg(0).extent * kBlocks, half);
  co_await drive->close();
  co_await scene.sleep(8_s);
  EXPECT_EQ(scene.volume().record.holder, "two") << "it may live";
  co_await scene.sleep(6_s);
  EXPECT_TRUE(scene.volume().record.is_clean);
  EXPECT_EQ(scene.volume().record.holder, "");
  EXPECT_EQ(scene.healer.counters().healed, 1U);
  volume::TestMedium::Page pages[3];
  for (size_t i = 0; i < 3; ++i) {
    scene.medium_of(entry.leg(i)).read(entry.leg(i).extent * kBlocks, pages[i]);
    EXPECT_EQ(pages[i], pages[0]) << i;
  }
}
TEST(Healer, LegsThatADeadHolderLeftAreMadeEqual) { run_scene(dead_holder); }

}  // namespace
}  // namespace cairn::arbiter
