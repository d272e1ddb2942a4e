// SPDX-License-Identifier: Apache-2.0
// Snapshots and clones: what they hold, what they cost, and what becomes of them when holders,
// drives and arbiters fail.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter_testing.h"
#include "task/gate.h"
#include "testing/stack/stacks.h"
#include "volume/volume_drive.h"

namespace cairn::arbiter {
namespace {

using drive::read_value;
using drive::run_in_sim;
using drive::write_value;
using task::Task;
using volume::VolumeDrive;

constexpr uint64_t kBlocks = kTestExtent / volume::TestMedium::kBlock;  // of an extent

// Four drives of 17 extents, 64 of them free in all, and an arbiter with them.
struct Scene {
  explicit Scene(env::Env& its_env)
      : env(its_env),
        local(meta::memory_store(its_env)),
        store(its_env, *local),
        media(test_media(4, 17)),
        source(its_env, media),
        fence(media) {}

  Task<void> begin(const std::string& host) {
    arbiter = std::make_unique<TestArbiter>(env, store, media, fence, host, measured.get());
    const bool leads = co_await arbiter->wait_until_leading();
    EXPECT_TRUE(leads);
  }
  Task<void> end() {
    co_await arbiter->close();
    arbiter.reset();
  }
  Task<void> create(std::string name, uint64_t extents, uint32_t replicas) {
    const Result<VolumeRecord> made = co_await arbiter->use()->create(
        {.name = std::move(name), .bytes = extents * kTestExtent, .replicas = replicas});
    EXPECT_TRUE(made) << (made ? "" : made.error().text());
  }
  Task<Errc> snapshot(std::string volume, std::string name) {
    const Result<VolumeRecord> made = co_await arbiter->use()->snapshot(volume, name);
    co_return made ? Errc{} : made.error().code();
  }
  Task<Errc> clone(std::string snapshot, std::string name) {
    const Result<VolumeRecord> made = co_await arbiter->use()->clone(snapshot, name);
    co_return made ? Errc{} : made.error().code();
  }
  Task<Errc> destroy(std::string name) {
    const Result<void> done = co_await arbiter->use()->destroy(name, false);
    co_await arbiter->settle();
    co_return done ? Errc{} : done.error().code();
  }
  Task<std::unique_ptr<VolumeDrive>> open(std::string name, bool take_over = false) {
    Result<std::unique_ptr<VolumeDrive>> opened =
        co_await VolumeDrive::open(env, arbiter->host(), source, name,
                                   {.client = fmt::format("client{}", ++clients),
                                    .take_over = take_over,
                                    .retry = 50_ms,
                                    .rebuild_after = 3_s,
                                    .sweep = 200_ms});
    EXPECT_TRUE(opened) << name << (opened ? "" : opened.error().text());
    co_return opened ? std::move(*opened) : nullptr;
  }
  Task<void> close(std::unique_ptr<VolumeDrive> drive) { co_await drive->close(); }
  // What a block of a volume that nobody has open holds.
  Task<int> value(std::string name, uint64_t block) {
    std::unique_ptr<VolumeDrive> drive = co_await open(name);
    if (drive == nullptr) co_return -1;
    const int value = co_await read_value(*drive, block);
    co_await drive->close();
    co_return value;
  }
  Task<void> sleep(Duration time) {
    const Result<void> slept = co_await task::sleep_for(env, time);
    EXPECT_TRUE(slept);
  }
  // Of a drive that leaves, as its holder hears when it renews its lease.
  Task<void> until_moved(const VolumeDrive& drive) {
    co_await sleep(3_s);
    for (int i = 0; i < 1000 && !drive.jobs().empty(); ++i) co_await sleep(20_ms);
    EXPECT_TRUE(drive.jobs().empty()) << "something is never moved";
  }
  const Volume& volume(const std::string& name) {
    return *const_cast<Pool&>(arbiter->use()->pool()).volume(name);
  }
  std::string audit() { return arbiter::audit(arbiter->use()->pool(), media); }

  env::Env& env;
  std::unique_ptr<meta::Store> local;
  SlowStore store;
  volume::TestMedia media;
  volume::TestSource source;
  TestFence fence;
  std::unique_ptr<LoadSource> measured;
  std::unique_ptr<TestArbiter> arbiter;
  int clients = 0;
};

// Runs `body(scene)` with an arbiter that has all drives. In the end nothing is amiss.
template <class Body>
void run_scene(Body body) {
  run_in_sim([body](env::Env& env) -> Task<void> {
    return [](env::Env& world, Body test) -> Task<void> {
      Scene scene(world);
      co_await scene.begin("arbiter.1");
      co_await scene.arbiter->add_all(4);
      co_await test(scene);
      co_await scene.arbiter->settle();
      EXPECT_EQ(scene.audit(), "");
      co_await scene.end();
      co_await scene.store.close();
    }(env, body);
  });
}

constexpr Errc kDone{};

Task<void> expect_value(drive::Drive& drive, uint64_t block, int value) {
  const int read = co_await read_value(drive, block);
  EXPECT_EQ(read, value) << "block " << block;
}

// Of one that nobody has open.
Task<void> expect_held(Scene& scene, std::string name, uint64_t block, int value) {
  const int read = co_await scene.value(name, block);
  EXPECT_EQ(read, value) << "block " << block << " of " << name;
}

Task<void> fill(drive::Drive& drive, uint64_t extents, uint8_t first) {
  for (uint64_t extent = 0; extent < extents; ++extent) {
    co_await write_value(drive, extent * kBlocks, static_cast<uint8_t>(first + extent));
  }
}

Task<void> keeps(Scene& scene, uint32_t replicas) {
  co_await scene.create("v", 4, replicas);
  const uint64_t free = scene.arbiter->free();
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await fill(*drive, 3, 10);
  for (uint8_t extent = 0; extent < 3; ++extent) {
    co_await write_value(*drive, extent * kBlocks + 1, static_cast<uint8_t>(20 + extent));
  }
  Errc done = co_await scene.snapshot("v", "one");
  EXPECT_EQ(done, kDone);
  // In the place of one block of an extent, over a whole one, into a new one, and away with one.
  co_await write_value(*drive, 0, 99);
  co_await write_value(*drive, 3 * kBlocks, 98);
  const Result<void> gone = co_await drive->discard(Lba(2 * kBlocks), kBlocks);
  EXPECT_TRUE(gone);
  EXPECT_EQ(drive->counters().snapshots, 1U);
  EXPECT_EQ(drive->counters().unshared, 1U) << "each extent once, and only when it is written";
  co_await write_value(*drive, 2, 97);
  EXPECT_EQ(drive->counters().unshared, 1U);
  co_await expect_value(*drive, 0, 99);
  co_await expect_value(*drive, 1, 20);
  co_await expect_value(*drive, kBlocks, 11);
  co_await expect_value(*drive, 2 * kBlocks, 0);
  const std::vector<int> expected = {10, 20, 11, 21, 12, 22, 0};
  const std::vector<uint64_t> blocks = {
      0, 1, kBlocks, kBlocks + 1, 2 * kBlocks, 2 * kBlocks + 1, 3 * kBlocks};
  for (size_t i = 0; i < blocks.size(); ++i) {
    co_await expect_held(scene, "v@one", blocks[i], expected[i]);
  }
  co_await scene.close(std::move(drive));
  co_await expect_held(scene, "v", 0, 99);
  EXPECT_EQ(scene.audit(), "");
  done = co_await scene.destroy("v");
  EXPECT_EQ(done, Errc::kExists) << "it has a snapshot";
  done = co_await scene.destroy("v@one");
  EXPECT_EQ(done, kDone);
  co_await expect_held(scene, "v", 1, 20);
  done = co_await scene.destroy("v");
  EXPECT_EQ(done, kDone);
  EXPECT_EQ(scene.arbiter->free(), free);
}
Task<void> keeps_one(Scene& scene) { return keeps(scene, 1); }
Task<void> keeps_two(Scene& scene) { return keeps(scene, 2); }
Task<void> keeps_three(Scene& scene) { return keeps(scene, 3); }
TEST(Snapshot, KeepsWhatWasThereWhenItWasMade) { run_scene(keeps_one); }
TEST(Snapshot, KeepsWhatWasThereOfTwoReplicas) { run_scene(keeps_two); }
TEST(Snapshot, KeepsWhatWasThereOfThreeReplicas) { run_scene(keeps_three); }

Task<void> cannot_be_written(Scene& scene) {
  co_await scene.create("v", 2, 2);
  const Errc done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone) << "also of a volume that nobody has open, and that holds nothing";
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v@s");
  const std::vector<std::byte> block(volume::kBlockBytes, std::byte{1});
  const Result<void> written = co_await drive->write(Lba(0), block);
  EXPECT_EQ(written.error().code(), Errc::kDenied);
  const Result<void> cleared = co_await drive->discard(Lba(0), kBlocks);
  EXPECT_EQ(cleared.error().code(), Errc::kDenied);
  co_await expect_value(*drive, 0, 0);
  EXPECT_TRUE(drive->is_held());
  co_await scene.close(std::move(drive));
  const Result<void> resized = co_await scene.arbiter->use()->resize("v@s", 3 * kTestExtent);
  EXPECT_EQ(resized.error().code(), Errc::kInvalid);
}
TEST(Snapshot, CannotBeWrittenOrChanged) { run_scene(cannot_be_written); }

Task<void> clones(Scene& scene) {
  co_await scene.create("v", 3, 2);
  const uint64_t free = scene.arbiter->free();
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await write_value(*drive, 0, 1);
  co_await write_value(*drive, kBlocks, 2);
  Errc done = co_await scene.clone("v", "c");
  EXPECT_EQ(done, Errc::kInvalid) << "it is no snapshot";
  done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  done = co_await scene.clone("v@s", "c");
  EXPECT_EQ(done, kDone);
  done = co_await scene.clone("v@s", "c");
  EXPECT_EQ(done, Errc::kExists);
  std::unique_ptr<VolumeDrive> clone = co_await scene.open("c");
  co_await write_value(*clone, 0, 3);
  co_await write_value(*drive, kBlocks, 4);
  co_await expect_value(*drive, 0, 1);
  co_await expect_value(*clone, kBlocks, 2);
  co_await expect_held(scene, "v@s", 0, 1);
  // A clone is a volume as any other: it has snapshots, and stays when its origin goes.
  done = co_await scene.snapshot("c", "s");
  EXPECT_EQ(done, kDone);
  co_await scene.close(std::move(drive));
  done = co_await scene.destroy("v@s");
  EXPECT_EQ(done, kDone);
  done = co_await scene.destroy("v");
  EXPECT_EQ(done, kDone);
  EXPECT_EQ(scene.audit(), "");
  co_await expect_value(*clone, kBlocks, 2);
  co_await write_value(*clone, kBlocks, 5);
  co_await expect_held(scene, "c@s", kBlocks, 2);
  co_await scene.close(std::move(clone));
  done = co_await scene.destroy("c@s");
  EXPECT_EQ(done, kDone);
  done = co_await scene.destroy("c");
  EXPECT_EQ(done, kDone);
  EXPECT_EQ(scene.arbiter->free(), free);
}
TEST(Snapshot, AClonesWritesAreItsOwn) { run_scene(clones); }

Task<void> promises(Scene& scene) {
  // 64 extents are free. The volume has all but 8: what is shared could not be written any more.
  co_await scene.create("v", 9, 3);
  co_await scene.create("other", 25, 1);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await fill(*drive, 9, 0);
  Errc done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, Errc::kNoSpace);
  co_await scene.destroy("other");
  done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  // 34 are left, of which 27 and a log of 3 are promised.
  const Result<VolumeRecord> more =
      co_await scene.arbiter->use()->create({.name = "more", .bytes = 4 * kTestExtent});
  EXPECT_EQ(more.error().code(), Errc::kNoSpace);
  done = co_await scene.clone("v@s", "c");
  EXPECT_EQ(done, Errc::kNoSpace);
  co_await fill(*drive, 9, 50);
  EXPECT_EQ(scene.arbiter->free(), 7U);
  for (uint64_t extent = 0; extent < 9; ++extent) {
    co_await expect_value(*drive, extent * kBlocks, static_cast<int>(50 + extent));
  }
  co_await scene.close(std::move(drive));
}
TEST(Snapshot, WhatItSharesCanAlwaysBeWritten) { run_scene(promises); }

Task<void> refused(Scene& scene) {
  co_await scene.create("v", 2, 2);
  Errc done = co_await scene.snapshot("w", "s");
  EXPECT_EQ(done, Errc::kNotFound);
  done = co_await scene.snapshot("v", "a@b");
  EXPECT_EQ(done, Errc::kInvalid);
  done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, Errc::kExists);
  done = co_await scene.snapshot("v@s", "t");
  EXPECT_EQ(done, Errc::kInvalid);
  done = co_await scene.clone("v@t", "c");
  EXPECT_EQ(done, Errc::kNotFound);
  // A holder that is not there any more stops no writes, and says so to nobody.
  const auto opened = co_await scene.arbiter->host().open({.volume = "v", .client = "dead"}, {});
  EXPECT_TRUE(opened);
  done = co_await scene.snapshot("v", "t");
  EXPECT_EQ(done, Errc::kTimedOut);
  const Result<void> late = co_await scene.arbiter->host().freeze(opened->session, "v@t", true, {});
  EXPECT_EQ(late.error().code(), Errc::kInvalid) << "nobody waits for it any more";
  EXPECT_EQ(const_cast<Pool&>(scene.arbiter->use()->pool()).volume("v@t"), nullptr);
  const Result<void> closed = co_await scene.arbiter->host().close(opened->session, false, {});
  EXPECT_TRUE(closed);
  done = co_await scene.snapshot("v", "t");
  EXPECT_EQ(done, Errc::kInvalid) << "its replicas may differ";
  co_await scene.value("v", 0);
  done = co_await scene.snapshot("v", "t");
  EXPECT_EQ(done, kDone);
}
TEST(Snapshot, RefusesWhatItCannotMake) { run_scene(refused); }

// A writer writes ever larger numbers to a block of each of three extents, one after the other.
Task<void> count_up(Scene& scene, VolumeDrive& drive, const bool& is_over, uint8_t& last) {
  while (!is_over && last < 255) {
    const auto next = static_cast<uint8_t>(last + 1);
    for (uint64_t extent = 0; extent < 3; ++extent) {
      co_await write_value(drive, extent * kBlocks + 3, next);
    }
    last = next;
    co_await scene.sleep(3_ms);
  }
}

Task<void> is_consistent(Scene& scene) {
  co_await scene.create("v", 3, 2);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  bool is_over = false;
  uint8_t last = 0;
  task::Gate gate;
  gate.spawn(count_up(scene, *drive, is_over, last));
  for (int i = 0; i < 6; ++i) {
    co_await scene.sleep(20_ms);
    const int before = last;
    const std::string name = fmt::format("s{}", i % 2);
    const Errc done = co_await scene.snapshot("v", name);
    EXPECT_EQ(done, kDone);
    const int after = last + 1;
    std::vector<int> values;
    for (uint64_t extent = 0; extent < 3; ++extent) {
      const int value = co_await scene.value("v@" + name, extent * kBlocks + 3);
      values.push_back(value);
    }
    EXPECT_GE(values[2], before) << "what was answered before is there";
    EXPECT_LE(values[0], after) << "what began later is not";
    EXPECT_GE(values[0], values[1]) << "writes are there in the order of their answers";
    EXPECT_GE(values[1], values[2]);
    EXPECT_LE(values[0], values[2] + 1);
    const Errc gone = co_await scene.destroy("v@" + name);
    EXPECT_EQ(gone, kDone);
  }
  is_over = true;
  co_await gate.close();
  EXPECT_GT(last, 6);
  co_await scene.close(std::move(drive));
}
TEST(Snapshot, IsOfOneMomentWhileTheVolumeIsWritten) { run_scene(is_consistent); }

// All drives lost what was acknowledged and not flushed. Whoever has the volume open makes no
// snapshot before a flush has told that, and who closes it instead leaves none to the arbiter.
Task<void> untold_loss(Scene& scene) {
  co_await scene.create("v", 3, 3);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 16);
  Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await write_value(*drive, 0, 2, 16);
  for (auto& [uri, medium] : scene.media) medium->lose_power();
  Errc done = co_await scene.snapshot("v", "open");
  EXPECT_EQ(done, Errc::kIo);
  co_await scene.close(std::move(drive));
  EXPECT_EQ(scene.volume("v").record.holder, "");
  EXPECT_FALSE(scene.volume("v").record.is_clean) << "its holder left as if it had died";
  done = co_await scene.snapshot("v", "closed");
  EXPECT_EQ(done, Errc::kInvalid);
  // Who opens it next sees what is there, and that does not change any more.
  drive = co_await scene.open("v");
  CO_ASSERT_TRUE(drive);
  std::vector<int> values;
  for (uint64_t block = 0; block < 16; ++block) {
    const int value = co_await read_value(*drive, block);
    EXPECT_TRUE(value == 1 || value == 2) << value;
    values.push_back(value);
  }
  co_await scene.close(std::move(drive));
  done = co_await scene.snapshot("v", "later");
  EXPECT_EQ(done, kDone);
  for (uint64_t block = 0; block < 16; ++block) {
    co_await expect_held(scene, "v@later", block, values[block]);
  }
}
TEST(Snapshot, IsNotMadeOfAVolumeThatWasClosedWithALossNobodyWasToldOf) { run_scene(untold_loss); }

// A loss that a flush has told of is no reason.
Task<void> told_loss(Scene& scene) {
  co_await scene.create("v", 3, 3);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 2, 16);
  for (auto& [uri, medium] : scene.media) medium->lose_power();
  const Result<void> flushed = co_await drive->flush();
  CO_ASSERT_TRUE(!flushed);
  EXPECT_EQ(flushed.error().code(), Errc::kIo);
  const Errc open = co_await scene.snapshot("v", "open");
  EXPECT_EQ(open, kDone);
  co_await scene.close(std::move(drive));
  EXPECT_TRUE(scene.volume("v").record.is_clean);
  const Errc closed = co_await scene.snapshot("v", "closed");
  EXPECT_EQ(closed, kDone);
}
TEST(Snapshot, IsMadeWhenAFlushHasToldOfALoss) { run_scene(told_loss); }

Task<void> outlives_arbiters(Scene& scene) {
  co_await scene.create("v", 4, 2);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await fill(*drive, 4, 1);
  Errc done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  done = co_await scene.clone("v@s", "c");
  EXPECT_EQ(done, kDone);
  co_await write_value(*drive, 0, 9);
  // A copy that was begun and not ended.
  const auto places = co_await scene.arbiter->host().begin_copies(
      {.volume = drive->session().volume, .epoch = drive->session().epoch, .turn = 1}, {2}, {});
  CO_ASSERT_TRUE(places);
  EXPECT_EQ(places->front().target.size(), 2U);
  co_await scene.close(std::move(drive));
  co_await scene.end();
  co_await scene.begin("arbiter.2");
  EXPECT_TRUE(scene.volume("v").copies.empty()) << "it was given back with the volume";
  EXPECT_EQ(scene.volume("v").to_copy, 3U);
  EXPECT_EQ(scene.volume("c").to_copy, 4U);
  co_await expect_held(scene, "v", 0, 9);
  co_await expect_held(scene, "v@s", 0, 1);
  co_await expect_held(scene, "c", kBlocks, 2);
}
TEST(Snapshot, OutlivesArbiters) { run_scene(outlives_arbiters); }

Task<void> survives_a_crash(Scene& scene) {
  co_await scene.create("v", 3, 2);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await write_value(*drive, 0, 1);
  co_await write_value(*drive, kBlocks, 2);
  Errc done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  const auto places = co_await scene.arbiter->host().begin_copies(
      {.volume = drive->session().volume, .epoch = drive->session().epoch, .turn = 1}, {1}, {});
  CO_ASSERT_TRUE(places);
  EXPECT_EQ(scene.volume("v").copies.size(), 1U);
  // Somebody takes it over in the middle of the copy: it has what it had.
  std::unique_ptr<VolumeDrive> second = co_await scene.open("v", true);
  EXPECT_TRUE(scene.volume("v").copies.empty());
  co_await expect_value(*second, 0, 1);
  co_await write_value(*second, 0, 3);
  co_await expect_held(scene, "v@s", 0, 1);
  co_await scene.close(std::move(second));
  co_await scene.close(std::move(drive));
}
TEST(Snapshot, ACopyThatACrashEndedIsGivenBack) { run_scene(survives_a_crash); }

// Whoever measures drives sees nothing of it: all are idle.
class AllIdle final : public LoadSource {
 public:
  DriveLoad load(MegaVolId) const override { return {}; }
};

Task<void> avoids_failed_places(Scene& scene) {
  co_await scene.end();
  scene.measured = std::make_unique<AllIdle>();
  co_await scene.begin("arbiter.1");
  co_await scene.create("v", 2, 1);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await write_value(*drive, 0, 1);
  const Errc done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  const volume::Session session{
      .volume = drive->session().volume, .epoch = drive->session().epoch, .turn = 1};
  std::set<MegaVolId> failed;
  for (int i = 0; i < 3; ++i) {
    const auto places = co_await scene.arbiter->host().begin_copies(session, {1}, {});
    CO_ASSERT_TRUE(places);
    CO_ASSERT_TRUE(places->front().target.is_mapped());
    const MegaVolId place = places->front().target.leg(0).mega_vol;
    EXPECT_TRUE(failed.insert(place).second) << "drive " << place.value() << " failed already";
    const auto ended =
        co_await scene.arbiter->host().end_copies(session, {{.extent = 1, .target = {}}}, {});
    EXPECT_TRUE(ended) << (ended ? "" : ended.error().text());
    co_await scene.arbiter->settle();
  }
  co_await scene.close(std::move(drive));
}
TEST(Snapshot, ACopyThatIsGivenUpIsBegunElsewhere) { run_scene(avoids_failed_places); }

Task<void> leaves(Scene& scene) {
  co_await scene.create("v", 3, 2);
  std::unique_ptr<VolumeDrive> drive = co_await scene.open("v");
  co_await fill(*drive, 3, 1);
  const Errc done = co_await scene.snapshot("v", "s");
  EXPECT_EQ(done, kDone);
  // A drive leaves: each of both moves its legs when it is open, and takes none from the other.
  const MegaVolId home = scene.volume("v").table[1].leg(0).mega_vol;
  const Result<void> drained = co_await scene.arbiter->use()->drain(home, true);
  EXPECT_TRUE(drained);
  co_await write_value(*drive, 0, 7);
  co_await scene.until_moved(*drive);
  EXPECT_EQ(scene.volume("v").legs.at(home), 0U);
  EXPECT_GT(scene.volume("v@s").legs.at(home), 0U);
  Result<void> removed = co_await scene.arbiter->use()->remove_mega_vol(home, false);
  EXPECT_EQ(removed.error().code(), Errc::kExists) << "the snapshot is there";
  std::unique_ptr<VolumeDrive> old = co_await scene.open("v@s");
  co_await scene.until_moved(*old);
  EXPECT_EQ(scene.volume("v@s").legs.at(home), 0U);
  co_await expect_value(*old, 0, 1);
  co_await expect_value(*drive, 0, 7);
  co_await scene.close(std::move(old));
  co_await scene.close(std::move(drive));
  co_await scene.arbiter->settle();
  removed = co_await scene.arbiter->use()->remove_mega_vol(home, false);
  EXPECT_TRUE(removed);
}
TEST(Snapshot, LeavesADriveAsAVolumeDoes) { run_scene(leaves); }

}  // namespace
}  // namespace cairn::arbiter
