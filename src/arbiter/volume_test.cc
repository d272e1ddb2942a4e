// SPDX-License-Identifier: Apache-2.0
// Volumes over an arbiter and test media: what they hold, what they ask for, and what becomes of
// them when drives, clients and arbiters fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "arbiter/arbiter_testing.h"
#include "testing/stack/stacks.h"
#include "volume/volume_drive.h"

namespace cairn::arbiter {
namespace {

using drive::read_value;
using drive::run_in_sim;
using drive::write_value;
using task::Task;
using volume::VolumeDrive;
using volume::VolumeOptions;

constexpr uint64_t kBlocks = kTestExtent / volume::TestMedium::kBlock;  // of an extent

// Passes calls on to an arbiter, unless it is away; can lose answers.
class TestLink final : public volume::ArbiterLink {
 public:
  explicit TestLink(volume::ArbiterLink& below) : below_(below) {}
  bool is_away = false;
  bool lost_moves = false;   // answers to relocations are lost
  bool lost_tables = false;  // answers that say where extents lie are lost
  uint64_t allocations = 0;

  Task<Result<volume::Opened>> open(volume::OpenArgs args, task::CancelToken token) override {
    return is_away ? away<volume::Opened>() : below_.open(std::move(args), token);
  }
  Task<Result<volume::Renewed>> renew(volume::Session session, task::CancelToken token) override {
    return is_away ? away<volume::Renewed>() : below_.renew(session, token);
  }
  Task<Result<void>> close(volume::Session session, bool is_clean,
                           task::CancelToken token) override {
    return is_away ? away<void>() : below_.close(session, is_clean, token);
  }
  Task<Result<std::vector<volume::Mapping>>> table(volume::Session session, uint32_t first,
                                                   task::CancelToken token) override {
    return is_away ? away<std::vector<volume::Mapping>>() : tell(session, first, token);
  }
  Task<Result<std::vector<volume::Mapping>>> allocate(volume::Session session,
                                                      std::vector<uint32_t> extents,
                                                      task::CancelToken token) override {
    ++allocations;
    return is_away ? away<std::vector<volume::Mapping>>()
                   : below_.allocate(session, std::move(extents), token);
  }
  Task<Result<void>> release(volume::Session session, std::vector<uint32_t> extents,
                             task::CancelToken token) override {
    return is_away ? away<void>() : below_.release(session, std::move(extents), token);
  }
  Task<Result<std::vector<volume::Mapping>>> report(volume::Session session,
                                                    std::vector<volume::LegReport> legs,
                                                    task::CancelToken token) override {
    return is_away ? away<std::vector<volume::Mapping>>()
                   : below_.report(session, std::move(legs), token);
  }
  Task<Result<volume::Mapping>> relocate(volume::Session session, volume::Relocation what,
                                         task::CancelToken token) override {
    return is_away ? away<volume::Mapping>() : move(session, what, token);
  }
  Task<Result<std::vector<volume::CopyPlace>>> begin_copies(volume::Session session,
                                                            std::vector<uint32_t> extents,
                                                            task::CancelToken token) override {
    return is_away ? away<std::vector<volume::CopyPlace>>()
                   : below_.begin_copies(session, std::move(extents), token);
  }
  Task<Result<std::vector<volume::Mapping>>> end_copies(volume::Session session,
                                                        std::vector<volume::CopyEnd> copies,
                                                        task::CancelToken token) override {
    return is_away ? away<std::vector<volume::Mapping>>()
                   : below_.end_copies(session, std::move(copies), token);
  }
  Task<Result<volume::Asked>> asked(volume::Session session, Duration wait,
                                    task::CancelToken token) override {
    return is_away ? away<volume::Asked>() : below_.asked(session, wait, token);
  }
  Task<Result<void>> freeze(volume::Session session, std::string snapshot, bool is_ready,
                            task::CancelToken token) override {
    return is_away ? away<void>() : below_.freeze(session, std::move(snapshot), is_ready, token);
  }

 private:
  template <class T>
  static Task<Result<T>> away() {
    co_return fail(Errc::kUnreachable, "no arbiter");
  }
  Task<Result<volume::Mapping>> move(volume::Session session, volume::Relocation what,
                                     task::CancelToken token) {
    const bool is_lost = lost_moves && what.drop;
    Result<volume::Mapping> moved = co_await below_.relocate(session, what, token);
    if (is_lost) co_return fail(Errc::kTimedOut, "no answer");
    co_return moved;
  }
  Task<Result<std::vector<volume::Mapping>>> tell(volume::Session session, uint32_t first,
                                                  task::CancelToken token) {
    Result<std::vector<volume::Mapping>> page = co_await below_.table(session, first, token);
    if (lost_tables) co_return fail(Errc::kTimedOut, "no answer");
    co_return page;
  }
  volume::ArbiterLink& below_;
};

// Four drives of 17 extents, an arbiter with them, and a client.
struct Scene {
  explicit Scene(env::Env& its_env)
      : env(its_env),
        store(meta::memory_store(its_env)),
        media(test_media(4, 17)),
        source(its_env, media),
        fence(media) {}

  Task<void> create(std::string name, uint64_t extents, uint32_t replicas) {
    const Result<VolumeRecord> made = co_await arbiter->use()->create(
        {.name = std::move(name), .bytes = extents * kTestExtent, .replicas = replicas});
    EXPECT_TRUE(made) << (made ? "" : made.error().text());
  }
  // Opens "v" as a client that boxes know by this name.
  Task<std::unique_ptr<VolumeDrive>> open(std::string client, bool take_over = false) {
    VolumeOptions options{.client = client,
                          .take_over = take_over,
                          .retry = 50_ms,
                          .rebuild_after = 3_s,
                          .sweep = 200_ms};
    Result<std::unique_ptr<VolumeDrive>> opened =
        co_await VolumeDrive::open(env, *link, source, "v", options);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().text());
    co_return opened ? std::move(*opened) : nullptr;
  }
  Task<void> sleep(Duration time) {
    const Result<void> slept = co_await task::sleep_for(env, time);
    EXPECT_TRUE(slept);
  }
  Task<void> until_healed(const VolumeDrive& drive) {
    for (int i = 0; i < 1000 && !drive.jobs().empty(); ++i) co_await sleep(20_ms);
    EXPECT_TRUE(drive.jobs().empty()) << "something is never healed";
  }
  const Volume& volume() { return *const_cast<Pool&>(arbiter->use()->pool()).volume("v"); }
  volume::TestMedium& medium_of(const volume::Leg& leg) {
    return *media.at(arbiter->use()->pool().members().at(leg.mega_vol).info.uri);
  }
  std::string audit() { return arbiter::audit(arbiter->use()->pool(), media); }
  // What is wrong between legs that the arbiter does not know to be stale. Empty: they are equal.
  std::string compare_legs() {
    std::array<std::byte, volume::TestMedium::kBlock> one{};
    std::array<std::byte, volume::TestMedium::kBlock> other{};
    for (uint32_t extent = 1; extent < volume().table.size(); ++extent) {
      const MapEntry entry = volume().table[extent];
      for (size_t i = 1; i < entry.size(); ++i) {
        if (entry.leg(0).is_stale || entry.leg(i).is_stale) continue;
        for (uint64_t block = 0; block < kBlocks; ++block) {
          medium_of(entry.leg(0)).read(entry.leg(0).extent * kBlocks + block, one);
          medium_of(entry.leg(i)).read(entry.leg(i).extent * kBlocks + block, other);
          if (one != other) return fmt::format("block {} of extent {} differs", block, extent);
        }
      }
    }
    return "";
  }

  env::Env& env;
  std::unique_ptr<meta::Store> store;
  volume::TestMedia media;
  volume::TestSource source;
  TestFence fence;
  std::unique_ptr<TestArbiter> arbiter;
  std::unique_ptr<TestLink> link;
};

template <class Body>
void run_scene(Body body) {
  run_in_sim([body](env::Env& env) -> Task<void> {
    return [](env::Env& world, Body test) -> Task<void> {
      Scene scene(world);
      scene.arbiter =
          std::make_unique<TestArbiter>(world, *scene.store, scene.media, scene.fence, "arbiter.1");
      const bool leads = co_await scene.arbiter->wait_until_leading();
      EXPECT_TRUE(leads);
      co_await scene.arbiter->add_all(4);
      scene.link = std::make_unique<TestLink>(scene.arbiter->host());
      co_await test(scene);
      co_await scene.arbiter->close();
      co_await scene.store->close();
    }(env, body);
  });
}

Task<void> expect_value(drive::Drive& drive, uint64_t block, int value) {
  const int read = co_await read_value(drive, block);
  EXPECT_EQ(read, value) << "block " << block;
}

Task<void> reads_back(Scene& scene) {
  co_await scene.create("v", 8, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  EXPECT_EQ(drive->geometry().blocks, 8 * kBlocks);
  co_await expect_value(*drive, 5, 0);
  EXPECT_EQ(scene.volume().mapped, 1U) << "a hole is read without space, but for the log";
  co_await write_value(*drive, kBlocks - 2, 7, 4);
  co_await expect_value(*drive, kBlocks - 2, 7);
  co_await expect_value(*drive, kBlocks + 1, 7);
  co_await expect_value(*drive, kBlocks + 2, 0);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await drive->close();
  EXPECT_EQ(scene.compare_legs(), "");
  EXPECT_TRUE(scene.volume().record.is_clean);
  for (auto& [uri, medium] : scene.media) medium->lose_power();
  drive = co_await scene.open("two");
  CO_ASSERT_TRUE(drive);
  co_await expect_value(*drive, kBlocks + 1, 7);
  EXPECT_EQ(drive->counters().equalized, 0U) << "it was closed";
  co_await drive->close();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, HoldsWhatWasWrittenOverExtents) { run_scene(reads_back); }

Task<void> asks_seldom(Scene& scene) {
  co_await scene.create("v", 16, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  for (uint64_t block = 0; block < 16 * kBlocks; block += 8) {
    co_await write_value(*drive, block, 1, 8);
  }
  const uint64_t calls = scene.link->allocations;
  EXPECT_LE(calls, 5U) << "a forward writer gets 1, 2, 4, 8 at a time";
  EXPECT_EQ(scene.volume().legs.size(), 4U);
  scene.link->is_away = true;
  for (uint64_t block = 0; block < 16 * kBlocks; block += 8) {
    co_await write_value(*drive, block, 2, 8);
    co_await expect_value(*drive, block, 2);
  }
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  EXPECT_EQ(scene.link->allocations, calls);
  EXPECT_TRUE(drive->concerns().empty());
  scene.link->is_away = false;
  co_await drive->close();
}
TEST(Volume, AsksTheArbiterOnlyForNewExtents) { run_scene(asks_seldom); }

Task<void> waits_for_arbiter(Scene& scene) {
  co_await scene.create("v", 8, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  scene.link->is_away = true;
  Task<void> write = write_value(*drive, 3 * kBlocks, 9);
  co_await scene.sleep(3_s);
  EXPECT_FALSE(write.is_done());
  CO_ASSERT_TRUE(!drive->concerns().empty());
  EXPECT_EQ(drive->concerns()[0].code, "arbiter_away");
  co_await write_value(*drive, 1, 2);
  co_await expect_value(*drive, 1, 2);
  scene.link->is_away = false;
  co_await write;
  EXPECT_TRUE(drive->concerns().empty());
  co_await expect_value(*drive, 3 * kBlocks, 9);
  co_await drive->close();
}
TEST(Volume, NewExtentsWaitWhileTheArbiterIsAwayAndOthersGoOn) { run_scene(waits_for_arbiter); }

Task<void> full_pool(Scene& scene) {
  co_await scene.create("v", 15, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  // Drives that are lost take their space with them.
  for (const char* uri : {"m0", "m1", "m2"}) scene.media.at(uri)->is_down = true;
  const auto leaving = [&](uint16_t id) {
    return const_cast<Pool&>(scene.arbiter->use()->pool()).member(MegaVolId(id));
  };
  for (const uint16_t id : {0, 1, 2}) leaving(id)->info.is_leaving = true;
  for (uint64_t extent = 0; extent < 15; ++extent) {
    co_await write_value(*drive, extent * kBlocks, 3);
  }
  co_await expect_value(*drive, 14 * kBlocks, 3);
  for (const char* uri : {"m0", "m1", "m2"}) scene.media.at(uri)->is_down = false;
  co_await drive->close();
}
TEST(Volume, UsesWhatDrivesThatStayHave) { run_scene(full_pool); }

Task<void> discards(Scene& scene) {
  co_await scene.create("v", 8, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  for (uint64_t extent = 0; extent < 8; ++extent) {
    co_await write_value(*drive, extent * kBlocks, 5, 16);
  }
  const uint64_t mapped = scene.volume().mapped;
  Result<void> done = co_await drive->discard(Lba(kBlocks / 2), 3 * kBlocks);
  EXPECT_TRUE(done);
  EXPECT_EQ(scene.volume().mapped, mapped - 2) << "extents 1 and 2 wholly";
  co_await expect_value(*drive, 0, 5);
  for (uint64_t block = kBlocks / 2; block < 3 * kBlocks + kBlocks / 2; block += 3) {
    co_await expect_value(*drive, block, 0);
  }
  co_await expect_value(*drive, 4 * kBlocks, 5);
  EXPECT_TRUE(drive->extent_at(Lba(kBlocks), 2 * kBlocks).is_hole);
  // Without an arbiter the space stays, and reads as zeroes.
  scene.link->is_away = true;
  done = co_await drive->discard(Lba(5 * kBlocks), kBlocks);
  EXPECT_TRUE(done);
  co_await expect_value(*drive, 5 * kBlocks, 0);
  scene.link->is_away = false;
  co_await write_value(*drive, kBlocks, 6);
  co_await expect_value(*drive, kBlocks, 6);
  co_await expect_value(*drive, kBlocks + 1, 0);
  co_await drive->close();
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, DiscardsGiveWholeExtentsBack) { run_scene(discards); }

Task<void> loses_drives(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 4);
  Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  const MapEntry entry = scene.volume().table[1];
  scene.medium_of(entry.leg(0)).is_down = true;
  scene.medium_of(entry.leg(2)).is_down = true;
  co_await expect_value(*drive, 0, 1);
  co_await write_value(*drive, 0, 2);
  flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await expect_value(*drive, 0, 2);
  EXPECT_EQ(scene.volume().table[1].in_sync(), 1U) << "the arbiter knows before the flush is done";
  EXPECT_FALSE(drive->concerns().empty());
  // Back before it counts as lost: it gets what it lacks and nothing else.
  scene.medium_of(entry.leg(0)).is_down = false;
  scene.medium_of(entry.leg(2)).is_down = false;
  co_await scene.until_healed(*drive);
  EXPECT_EQ(scene.volume().table[1].in_sync(), 3U);
  EXPECT_EQ(scene.volume().table[1].leg(0), entry.leg(0));
  EXPECT_EQ(drive->counters().relocated, 0U);
  co_await drive->close();
  EXPECT_EQ(scene.compare_legs(), "");
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, GoesOnWithoutTwoOfThreeDrivesAndCatchesUp) { run_scene(loses_drives); }

// All drives are in one box that writes several of them with one command.
Task<void> writes_at_once(Scene& scene) {
  for (auto& [uri, medium] : scene.media) medium->box = 1;
  co_await scene.create("v", 4, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);  // the extent gets its place, and its region a mark
  const MapEntry entry = scene.volume().table[1];
  const uint64_t before = drive->counters().at_once;
  co_await write_value(*drive, 0, 2, 4);
  EXPECT_EQ(drive->counters().at_once, before + 1);
  co_await expect_value(*drive, 3, 2);
  // One leg fails: the others have the write, and that one is known to lack it.
  scene.medium_of(entry.leg(1)).write_errors = 1;
  co_await write_value(*drive, 0, 3);
  EXPECT_EQ(drive->counters().at_once, before + 1);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  EXPECT_EQ(scene.volume().table[1].in_sync(), 2U);
  co_await expect_value(*drive, 0, 3);
  scene.medium_of(entry.leg(1)).write_errors = 0;
  co_await scene.until_healed(*drive);
  co_await write_value(*drive, 0, 4);
  // A leg that is in another box is written by itself.
  scene.medium_of(entry.leg(2)).box = 2;
  const uint64_t so_far = drive->counters().at_once;
  co_await write_value(*drive, 0, 5);
  EXPECT_EQ(drive->counters().at_once, so_far);
  co_await drive->close();
  EXPECT_EQ(scene.compare_legs(), "");
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, ABoxWritesAllLegsWithOneCommand) { run_scene(writes_at_once); }

Task<void> rebuilds(Scene& scene) {
  co_await scene.create("v", 6, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  for (uint64_t extent = 0; extent < 6; ++extent) {
    co_await write_value(*drive, extent * kBlocks + 1, static_cast<uint8_t>(extent + 1));
  }
  Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  const volume::MegaVolId lost = scene.volume().table[1].leg(0).mega_vol;
  scene.medium_of(scene.volume().table[1].leg(0)).is_down = true;
  co_await write_value(*drive, 0, 9);
  flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await scene.sleep(4_s);
  co_await scene.until_healed(*drive);
  for (uint32_t extent = 0; extent < 7; ++extent) {
    const MapEntry entry = scene.volume().table[extent];
    EXPECT_EQ(entry.in_sync(), 2U) << extent;
    EXPECT_EQ(entry.find(lost), 2U) << extent << " has left the drive";
  }
  for (uint64_t extent = 0; extent < 6; ++extent) {
    co_await expect_value(*drive, extent * kBlocks + 1, static_cast<int>(extent + 1));
  }
  EXPECT_EQ(scene.compare_legs(), "");
  co_await drive->close();
  const Result<void> removed = co_await scene.arbiter->use()->remove_mega_vol(lost, true);
  EXPECT_TRUE(removed) << (removed ? "" : removed.error().text());
}
TEST(Volume, RebuildsWhatADriveHadThatStaysAway) { run_scene(rebuilds); }

Task<void> leaves_what_shrank(Scene& scene) {
  co_await scene.create("v", 2, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 3, 11);
  const volume::Leg leg = scene.volume().table[1].leg(0);
  // Its label is there, and nothing else.
  scene.medium_of(leg).shrink(kBlocks * volume::TestMedium::kBlock);
  co_await write_value(*drive, 4, 12);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await scene.until_healed(*drive);
  const MapEntry entry = scene.volume().table[1];
  EXPECT_EQ(entry.in_sync(), 2U);
  EXPECT_EQ(entry.find(leg.mega_vol), 2U) << "it has left the drive";
  EXPECT_EQ(scene.compare_legs(), "");
  co_await expect_value(*drive, 3, 11);
  co_await expect_value(*drive, 4, 12);
  co_await drive->close();
}
TEST(Volume, TheLegsOfADriveThatBecameSmallerGoToOthers) { run_scene(leaves_what_shrank); }

Task<void> drains(Scene& scene, uint32_t replicas) {
  co_await scene.create("v", 6, replicas);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  for (uint64_t extent = 0; extent < 6; ++extent) {
    co_await write_value(*drive, extent * kBlocks + 1, static_cast<uint8_t>(extent + 1));
  }
  const volume::MegaVolId home = scene.volume().table[1].leg(0).mega_vol;
  const Result<void> drained = co_await scene.arbiter->use()->drain(home, true);
  EXPECT_TRUE(drained);
  co_await scene.sleep(3_s);
  co_await scene.until_healed(*drive);
  EXPECT_EQ(scene.arbiter->use()->pool().members().at(home).legs, 0U);
  for (uint64_t extent = 0; extent < 6; ++extent) {
    co_await expect_value(*drive, extent * kBlocks + 1, static_cast<int>(extent + 1));
    EXPECT_EQ(scene.volume().table[extent + 1].in_sync(), replicas);
  }
  co_await drive->close();
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.audit(), "");
  const Result<void> removed = co_await scene.arbiter->use()->remove_mega_vol(home, false);
  EXPECT_TRUE(removed);
}
TEST(Volume, LeavesADriveThatIsDrainedWithOneReplica) {
  run_scene([](Scene& scene) { return drains(scene, 1); });
}
TEST(Volume, LeavesADriveThatIsDrainedWithThreeReplicas) {
  run_scene([](Scene& scene) { return drains(scene, 3); });
}

Task<Result<void>> write_unstable(drive::Drive& drive, MutableBytes memory) {
  co_return co_await drive.submit(
      {.kind = drive::Request::Kind::kWrite, .unstable_memory = true, .lba = Lba(0), .blocks = 1},
      {&memory, 1});
}

// The first extent of "v" on its way from one medium to another: what was there is copied, and the
// other is flushed now, slowly.
struct Move {
  volume::TestMedium* from = nullptr;
  volume::TestMedium* to = nullptr;
  volume::Leg from_leg;
  volume::Leg to_leg;

  // What the block has on both.
  std::pair<std::byte, std::byte> first_bytes() const {
    std::array<std::byte, volume::TestMedium::kBlock> one{};
    std::array<std::byte, volume::TestMedium::kBlock> other{};
    from->read(from_leg.extent * kBlocks, one);
    to->read(to_leg.extent * kBlocks, other);
    return {one[0], other[0]};
  }
};

Task<Move> begin_move(Scene& scene, Duration latency) {
  Move move{.from_leg = scene.volume().table[1].leg(0), .to_leg = {}};
  for (auto& [uri, medium] : scene.media) medium->latency_max = latency;
  move.from = &scene.medium_of(move.from_leg);
  const Result<void> drained = co_await scene.arbiter->use()->drain(move.from_leg.mega_vol, true);
  EXPECT_TRUE(drained);
  for (int i = 0; i < 10000 && scene.volume().table[1].size() < 2; ++i) co_await scene.sleep(1_ms);
  move.to_leg = scene.volume().table[1].leg(1);
  move.to = &scene.medium_of(move.to_leg);
  const uint64_t before = move.to->counters.writes;
  for (int i = 0; i < 10000 && move.to->counters.writes == before; ++i) co_await scene.sleep(1_ms);
  co_return move;
}

// Also while both legs are there, of which the later one alone stays.
Task<void> moves_one_replica(Scene& scene) {
  co_await scene.create("v", 2, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  const Move move = co_await begin_move(scene, 200_ms);
  move.from->latency_max = 20_us;
  // Memory changes when the first drive has the write.
  std::vector<std::byte> memory(volume::TestMedium::kBlock, std::byte{7});
  const uint64_t written = move.from->counters.writes;
  Task<Result<void>> write = write_unstable(*drive, memory);
  while (move.from->counters.writes == written && !write.is_done()) co_await scene.sleep(20_us);
  EXPECT_FALSE(write.is_done());
  std::ranges::fill(memory, std::byte{8});
  const Result<void> done = co_await write;
  EXPECT_TRUE(done);
  EXPECT_EQ(move.first_bytes().first, move.first_bytes().second);
  co_await scene.sleep(3_s);
  co_await scene.until_healed(*drive);
  EXPECT_EQ(scene.volume().table[1].find(move.from_leg.mega_vol), 1U) << "it has moved";
  co_await expect_value(*drive, 0, 7);
  co_await drive->close();
}
TEST(Volume, AMoveShowsNoOtherBytesOfMemoryThatChanged) { run_scene(moves_one_replica); }

Task<void> writes_unstable(Scene& scene) {
  co_await scene.create("v", 2, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  const MapEntry entry = scene.volume().table[1];
  for (auto& [uri, medium] : scene.media) medium->latency_max = 200_ms;
  volume::TestMedium& head = scene.medium_of(entry.leg(0));
  head.latency_max = 20_us;
  std::vector<std::byte> memory(volume::TestMedium::kBlock, std::byte{7});
  const uint64_t written = head.counters.writes;
  Task<Result<void>> write = write_unstable(*drive, memory);
  while (head.counters.writes == written && !write.is_done()) co_await scene.sleep(20_us);
  EXPECT_FALSE(write.is_done());
  std::ranges::fill(memory, std::byte{8});
  const Result<void> done = co_await write;
  EXPECT_TRUE(done);
  EXPECT_EQ(scene.compare_legs(), "");
  co_await expect_value(*drive, 0, 7);
  co_await drive->close();
}
TEST(Volume, AllLegsGetTheSameBytesOfMemoryThatChanges) { run_scene(writes_unstable); }

// Many writes of one block in flight together, while it moves.
Task<void> moves_in_one_order(Scene& scene) {
  co_await scene.create("v", 2, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  for (uint8_t round = 0; round < 12; ++round) {
    const Move move = co_await begin_move(scene, 20_ms);
    std::vector<Task<void>> writes;
    for (uint8_t i = 0; i < 6; ++i) {
      writes.push_back(write_value(*drive, 0, static_cast<uint8_t>(10 + i)));
    }
    for (Task<void>& write : writes) co_await write;
    EXPECT_EQ(move.first_bytes().first, move.first_bytes().second) << int{round};
    for (int i = 0; i < 10000 && scene.volume().table[1].find(move.from_leg.mega_vol) == 0; ++i) {
      co_await scene.sleep(5_ms);
    }
    const Result<void> stays = co_await scene.arbiter->use()->drain(move.from_leg.mega_vol, false);
    EXPECT_TRUE(stays);
  }
  co_await drive->close();
}
TEST(Volume, AMoveKeepsTheOrderOfWritesOfOneBlock) { run_scene(moves_in_one_order); }

// The box forgot its hosts when it lost power: the drive that is opened anew knows of no loss.
Task<void> loses_only_replica(Scene& scene) {
  co_await scene.create("v", 4, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 16);
  Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await write_value(*drive, 0, 2, 16);
  volume::TestMedium& medium = scene.medium_of(scene.volume().table[1].leg(0));
  const drive::Incarnation before = drive->incarnation();
  medium.fence("one");
  medium.lose_power();
  int value = -1;
  for (int i = 0; i < 1000 && value < 0; ++i) {
    std::vector<std::byte> memory(volume::TestMedium::kBlock);
    const Result<void> read = co_await drive->read(Lba(0), memory);
    if (read) value = static_cast<int>(memory[0]);
    co_await scene.sleep(10_ms);
  }
  EXPECT_TRUE(value == 1 || value == 2) << value;
  EXPECT_NE(drive->incarnation(), before);
  flushed = co_await drive->flush();
  CO_ASSERT_TRUE(!flushed);
  EXPECT_EQ(flushed.error().code(), Errc::kIo);
  flushed = co_await drive->flush();
  EXPECT_TRUE(flushed) << "once";
  co_await drive->close();
}
TEST(Volume, ALossOfTheOnlyReplicaIsToldThoughItsDriveWasOpenedAnew) {
  run_scene(loses_only_replica);
}

// All drives but this one are left by all who have extents there.
Task<void> leave_all_but(Scene& scene, volume::MegaVolId stays) {
  for (auto& [id, member] : scene.arbiter->use()->pool().members()) {
    if (id != stays) {
      const_cast<Pool&>(scene.arbiter->use()->pool()).member(id)->info.is_leaving = true;
    }
  }
  co_await scene.sleep(4_s);
}

// Values in all extents, flushed.
Task<void> fill_extents(VolumeDrive& drive, uint64_t extents) {
  for (uint64_t extent = 0; extent < extents; ++extent) {
    co_await write_value(drive, extent * kBlocks, 1, 16);
  }
  const Result<void> flushed = co_await drive.flush();
  EXPECT_TRUE(flushed);
}

// The volume flushes the drive by itself, and is told what the user has to hear.
Task<void> loss_met_by_a_move(Scene& scene) {
  co_await scene.create("v", 8, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await fill_extents(*drive, 8);
  const volume::Leg leg = scene.volume().table[1].leg(0);
  co_await write_value(*drive, 0, 2, 16);
  scene.medium_of(leg).lose_power();
  co_await leave_all_but(scene, leg.mega_vol);
  co_await scene.until_healed(*drive);
  EXPECT_GE(drive->counters().resynced, 1U);
  Result<void> flushed = co_await drive->flush();
  EXPECT_FALSE(flushed);
  flushed = co_await drive->flush();
  EXPECT_TRUE(flushed) << "once";
  co_await drive->close();
}
TEST(Volume, ALossThatItsOwnFlushMetIsToldToTheNext) { run_scene(loss_met_by_a_move); }

// The answer to the call that ended the move is lost, and then what was written since it was
// copied: the arbiter has no other leg any more.
Task<void> loses_answer_of_a_move(Scene& scene) {
  co_await scene.create("v", 8, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await fill_extents(*drive, 8);
  const volume::Leg stays = scene.volume().table[1].leg(0);
  scene.link->lost_moves = true;
  co_await leave_all_but(scene, stays.mega_vol);
  scene.medium_of(stays).lose_power();
  co_await expect_value(*drive, 0, 1);  // and so it is noticed
  co_await scene.sleep(1_s);
  scene.link->lost_moves = false;
  co_await scene.sleep(4_s);
  co_await scene.until_healed(*drive);
  for (uint64_t extent = 0; extent < 8; ++extent) {
    co_await expect_value(*drive, extent * kBlocks, 1);
    co_await write_value(*drive, extent * kBlocks, 3);
  }
  Result<void> flushed = co_await drive->flush();
  if (!flushed) flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await drive->close();
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, ALostAnswerOfAMoveLeavesTheExtentUsable) { run_scene(loses_answer_of_a_move); }

// The client learns of drives when it renews its lease, and meets this one before.
Task<void> grows_pool(Scene& scene) {
  co_await scene.create("v", 30, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  for (uint64_t extent = 0; extent < 20; ++extent)
    co_await write_value(*drive, extent * kBlocks, 1);
  scene.media["m9"] = std::make_unique<volume::TestMedium>(17 * kTestExtent, 10);
  const Result<volume::MegaVolInfo> added =
      co_await scene.arbiter->use()->add_mega_vol({.uri = "m9"});
  CO_ASSERT_TRUE(added);
  for (uint64_t extent = 20; extent < 30; ++extent) {
    co_await write_value(*drive, extent * kBlocks, 2);
    co_await expect_value(*drive, extent * kBlocks, 2);
  }
  EXPECT_GT(scene.arbiter->use()->pool().members().at(added->id).legs, 0U);
  EXPECT_EQ(drive->counters().relocated, 0U);
  co_await drive->close();
}
TEST(Volume, ADriveThatJustJoinedIsWrittenAtOnce) { run_scene(grows_pool); }

// The pool gives the number of a drive that left to another one.
Task<void> number_again(Scene& scene) {
  co_await scene.create("v", 40, 1);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  for (uint64_t extent = 0; extent < 12; ++extent)
    co_await write_value(*drive, extent * kBlocks, 1);
  const volume::MegaVolId number = scene.volume().table[1].leg(0).mega_vol;
  volume::TestMedium& former = scene.medium_of(scene.volume().table[1].leg(0));
  const Result<void> drained = co_await scene.arbiter->use()->drain(number, true);
  EXPECT_TRUE(drained);
  co_await scene.sleep(4_s);
  co_await scene.until_healed(*drive);
  co_await scene.arbiter->settle();
  const Result<void> removed = co_await scene.arbiter->use()->remove_mega_vol(number, false);
  EXPECT_TRUE(removed) << (removed ? "" : removed.error().text());
  const uint64_t writes = former.counters.writes;
  // As if all others had been given meanwhile.
  const auto make_next = [&] {
    const_cast<Pool&>(scene.arbiter->use()->pool()).record.next_mega_vol = number.value();
  };
  scene.media["m8"] = std::make_unique<volume::TestMedium>(17 * kTestExtent, 9);
  scene.media["m9"] = std::make_unique<volume::TestMedium>(17 * kTestExtent, 10);
  make_next();
  Result<volume::MegaVolInfo> added = co_await scene.arbiter->use()->add_mega_vol({.uri = "m8"});
  CO_ASSERT_TRUE(added);
  EXPECT_NE(added->id, number) << "somebody may remember it";
  co_await scene.sleep(11_s);
  make_next();
  added = co_await scene.arbiter->use()->add_mega_vol({.uri = "m9"});
  CO_ASSERT_TRUE(added);
  EXPECT_EQ(added->id, number);
  for (uint64_t extent = 12; extent < 40; ++extent) {
    co_await write_value(*drive, extent * kBlocks, 2);
    co_await expect_value(*drive, extent * kBlocks, 2);
  }
  EXPECT_GT(scene.arbiter->use()->pool().members().at(number).legs, 0U);
  EXPECT_EQ(former.counters.writes, writes) << "it belongs to nobody, or to somebody else";
  const Result<void> discarded = co_await drive->discard(Lba(0), 40 * kBlocks);
  EXPECT_TRUE(discarded);
  co_await drive->close();
  co_await scene.arbiter->settle();
  EXPECT_EQ(former.counters.writes, writes);
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, ADriveWithTheNumberOfAFormerOneIsNotTakenForIt) { run_scene(number_again); }

// The log of a volume that has copies no more is given back, and moves with nobody.
Task<void> fewer_replicas(Scene& scene) {
  co_await scene.create("v", 4, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  co_await drive->close();
  const Result<void> fewer = co_await scene.arbiter->use()->set_replicas("v", 1);
  EXPECT_TRUE(fewer);
  for (const char* client : {"two", "three"}) {
    drive = co_await scene.open(client);
    CO_ASSERT_TRUE(drive);
    co_await write_value(*drive, 1, 2);
    co_await scene.until_healed(*drive);
    co_await drive->close();
  }
  drive = co_await scene.open("four");
  CO_ASSERT_TRUE(drive);
  co_await scene.until_healed(*drive);
  EXPECT_FALSE(scene.volume().table[0].is_mapped());
  const volume::MegaVolId home = scene.volume().table[1].leg(0).mega_vol;
  const Result<void> drained = co_await scene.arbiter->use()->drain(home, true);
  EXPECT_TRUE(drained);
  co_await scene.sleep(3_s);
  co_await scene.until_healed(*drive);
  co_await expect_value(*drive, 0, 1);
  co_await expect_value(*drive, 1, 2);
  co_await drive->close();
  co_await scene.arbiter->settle();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, GivesItsLogBackWhenItHasNoCopiesAnyMore) { run_scene(fewer_replicas); }

Task<void> power_loss(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 16);
  const MapEntry entry = scene.volume().table[1];
  scene.medium_of(entry.leg(0)).lose_power();
  scene.medium_of(entry.leg(1)).lose_power();
  Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed) << "one drive has it all";
  EXPECT_EQ(scene.volume().table[1].leg(2).is_stale, false);
  for (uint64_t block = 0; block < 16; ++block) co_await expect_value(*drive, block, 1);
  co_await scene.until_healed(*drive);
  EXPECT_EQ(scene.compare_legs(), "");
  // All of them: the flush says so, once, and the legs are equal all the same.
  co_await write_value(*drive, 0, 2, 16);
  for (auto& [uri, medium] : scene.media) medium->lose_power();
  flushed = co_await drive->flush();
  EXPECT_EQ(flushed.error().code(), Errc::kIo);
  flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await scene.until_healed(*drive);
  EXPECT_EQ(scene.compare_legs(), "");
  for (uint64_t block = 0; block < 16; ++block) {
    const int value = co_await read_value(*drive, block);
    EXPECT_TRUE(value == 1 || value == 2) << value;
  }
  co_await drive->close();
}
TEST(Volume, AFlushTellsOfALossOnlyWhenNoDriveHasTheWrites) { run_scene(power_loss); }

Task<void> durable_changes(Scene& scene, uint32_t replicas) {
  co_await scene.create("v", 4, replicas);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 2 * kBlocks);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  std::vector<std::byte> memory(volume::TestMedium::kBlock, std::byte{2});
  const MutableBytes piece(memory);
  const drive::Request write{
      .kind = drive::Request::Kind::kWrite, .durable = true, .lba = Lba(3), .blocks = 1};
  Result<void> done = co_await drive->submit(write, {&piece, 1});
  EXPECT_TRUE(done);
  // A part of the first extent, and the second one.
  const drive::Request zero{.kind = drive::Request::Kind::kWriteZeroes,
                            .durable = true,
                            .lba = Lba(kBlocks - 2),
                            .blocks = kBlocks + 2};
  done = co_await drive->submit(zero, {});
  EXPECT_TRUE(done);
  for (auto& [uri, medium] : scene.media) medium->lose_power();
  co_await expect_value(*drive, 0, 1);
  co_await expect_value(*drive, 3, 2);
  for (uint64_t block = kBlocks - 2; block < 2 * kBlocks; ++block) {
    co_await expect_value(*drive, block, 0);
  }
  co_await drive->close();
}
TEST(Volume, DurableChangesLastWithoutAFlush) {
  run_scene([](Scene& scene) { return durable_changes(scene, 3); });
}
TEST(Volume, DurableChangesOfOneReplicaLastWithoutAFlush) {
  run_scene([](Scene& scene) { return durable_changes(scene, 1); });
}

Task<void> client_crash(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 16);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await write_value(*drive, 0, 2, 16);
  // The client dies in the middle of a write: the head has it, the others do not.
  const MapEntry entry = scene.volume().table[1];
  const std::vector<std::byte> half(volume::TestMedium::kBlock, std::byte{9});
  scene.medium_of(entry.leg(0)).write(entry.leg(0).extent * kBlocks + 3, half);
  EXPECT_NE(scene.compare_legs(), "");
  for (auto& [uri, medium] : scene.media) medium->fence("one");
  auto next = co_await scene.open("two", true);
  CO_ASSERT_TRUE(next);
  const int first = co_await read_value(*next, 3);
  EXPECT_TRUE(first == 2 || first == 9) << first;
  for (int i = 0; i < 10; ++i) co_await expect_value(*next, 3, first);
  EXPECT_EQ(scene.compare_legs(), "") << "whoever reads sees what all legs have";
  EXPECT_GE(next->counters().mended, 1U);
  co_await next->close();
  co_await drive->close();
}
TEST(Volume, AHolderThatDiedLeavesLegsThatAreMadeEqual) { run_scene(client_crash); }

// Who comes after the one that died cannot begin, and gives the volume back: it has read no marks,
// so it must not say that legs are equal.
Task<void> opens_in_vain(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 16);
  const Result<void> flushed = co_await drive->flush();
  EXPECT_TRUE(flushed);
  co_await write_value(*drive, 0, 2, 16);
  const MapEntry entry = scene.volume().table[1];
  const std::vector<std::byte> half(volume::TestMedium::kBlock, std::byte{9});
  scene.medium_of(entry.leg(0)).write(entry.leg(0).extent * kBlocks + 3, half);
  for (auto& [uri, medium] : scene.media) medium->fence("one");
  scene.link->lost_tables = true;
  const Result<std::unique_ptr<VolumeDrive>> failed = co_await VolumeDrive::open(
      scene.env, *scene.link, scene.source, "v", {.client = "two", .take_over = true});
  EXPECT_FALSE(failed);
  scene.link->lost_tables = false;
  EXPECT_EQ(scene.volume().record.holder, "");
  EXPECT_FALSE(scene.volume().record.is_clean);
  auto next = co_await scene.open("three");
  CO_ASSERT_TRUE(next);
  const int first = co_await read_value(*next, 3);
  EXPECT_TRUE(first == 2 || first == 9) << first;
  EXPECT_EQ(scene.compare_legs(), "") << "whoever reads sees what all legs have";
  EXPECT_GE(next->counters().mended, 1U);
  co_await next->close();
  EXPECT_TRUE(scene.volume().record.is_clean);
  // One that was closed in order stays so.
  scene.link->lost_tables = true;
  const Result<std::unique_ptr<VolumeDrive>> again =
      co_await VolumeDrive::open(scene.env, *scene.link, scene.source, "v", {.client = "four"});
  EXPECT_FALSE(again);
  scene.link->lost_tables = false;
  EXPECT_TRUE(scene.volume().record.is_clean);
  co_await drive->close();
}
TEST(Volume, AnOpeningThatFailsLeavesWhatItFoundForTheNextOne) { run_scene(opens_in_vain); }

// A holder dies together with a drive, and what it sent there lands late.
struct DeadHolder {
  std::unique_ptr<VolumeDrive> drive;
  std::unique_ptr<TestLink> link;
};

Task<DeadHolder> die_holding(Scene& scene, std::unique_ptr<VolumeDrive> drive) {
  DeadHolder dead{.drive = std::move(drive), .link = std::move(scene.link)};
  dead.link->is_away = true;
  scene.link = std::make_unique<TestLink>(scene.arbiter->host());
  co_await scene.sleep(11_s);
  co_return dead;
}

Task<void> dies_with_a_box(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto first = co_await scene.open("one");
  CO_ASSERT_TRUE(first);
  for (uint64_t extent = 0; extent < 4; ++extent) {
    co_await write_value(*first, extent * kBlocks, 1, 16);
  }
  const Result<void> flushed = co_await first->flush();
  EXPECT_TRUE(flushed);
  co_await scene.sleep(1_s);
  co_await write_value(*first, 0, 2, 16);
  const MapEntry entry = scene.volume().table[1];
  volume::TestMedium& away = scene.medium_of(entry.leg(0));
  const uint64_t late_block = entry.leg(0).extent * kBlocks + 3;
  away.is_down = true;
  DeadHolder dead = co_await die_holding(scene, std::move(first));
  auto next = co_await scene.open("two");
  CO_ASSERT_TRUE(next);
  for (uint64_t block = 0; block < 16; ++block) co_await expect_value(*next, block, 2);
  co_await expect_value(*next, kBlocks, 1);
  co_await write_value(*next, 4, 3, 4);
  co_await write_value(*next, kBlocks, 3, 4);
  Result<void> done = co_await next->flush();
  EXPECT_TRUE(done);
  EXPECT_EQ(scene.volume().table[1].in_sync(), 2U);
  // The drive is back for all but arbiters, and something that the dead one sent arrives.
  away.is_down = false;
  away.is_cut_off = true;
  EXPECT_TRUE(away.has_host("one"));
  const std::vector<std::byte> late(volume::TestMedium::kBlock, std::byte{9});
  away.write(late_block, late);
  const volume::TestMedium::Counters before = away.counters;
  co_await scene.sleep(500_ms);
  for (uint64_t block = 0; block < 4; ++block) co_await expect_value(*next, block, 2);
  EXPECT_FALSE(away.has_host("two")) << "it does not come there";
  EXPECT_EQ(away.counters.writes, before.writes);
  away.is_cut_off = false;
  co_await scene.sleep(5_s);
  co_await scene.until_healed(*next);
  EXPECT_FALSE(away.has_host("one"));
  EXPECT_EQ(scene.volume().table[1].in_sync(), 3U);
  EXPECT_EQ(next->counters().relocated, 0U) << "it gets what it lacks";
  for (uint64_t block = 0; block < 4; ++block) co_await expect_value(*next, block, 2);
  EXPECT_EQ(scene.compare_legs(), "");
  co_await next->close();
  co_await dead.drive->close();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, AHolderThatDiesWithABoxLeavesAVolumeThatTheNextOneOpens) {
  run_scene(dies_with_a_box);
}

// Of one replica: what lies elsewhere is there at once, and what lies there when it is back.
Task<void> dies_with_its_drive(Scene& scene) {
  co_await scene.create("v", 8, 1);
  auto first = co_await scene.open("one");
  CO_ASSERT_TRUE(first);
  for (uint64_t extent = 0; extent < 8; ++extent) {
    co_await write_value(*first, extent * kBlocks, 1);
  }
  const volume::MegaVolId lost = scene.volume().table[1].leg(0).mega_vol;
  volume::TestMedium& away = scene.medium_of(scene.volume().table[1].leg(0));
  away.is_down = true;
  DeadHolder dead = co_await die_holding(scene, std::move(first));
  auto next = co_await scene.open("two");
  CO_ASSERT_TRUE(next);
  for (uint32_t extent = 1; extent <= 8; ++extent) {
    const bool is_there = scene.volume().table[extent].leg(0).mega_vol != lost;
    const int value = co_await read_value(*next, (extent - 1) * kBlocks);
    EXPECT_EQ(value, is_there ? 1 : -1) << extent;
  }
  away.is_down = false;
  co_await scene.sleep(4_s);
  co_await scene.until_healed(*next);
  co_await expect_value(*next, 0, 1);
  EXPECT_FALSE(away.has_host("one"));
  co_await next->close();
  co_await dead.drive->close();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, WithOneReplicaTheNextOneWaitsOnlyForTheDriveThatDied) {
  run_scene(dies_with_its_drive);
}

// A drive where nobody could be fenced stays away: its legs go to others, and what it had is not
// cleared before the dead one is fenced there.
Task<void> never_comes_back(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto first = co_await scene.open("one");
  CO_ASSERT_TRUE(first);
  for (uint64_t extent = 0; extent < 4; ++extent) {
    co_await write_value(*first, extent * kBlocks, 1, 16);
  }
  const MapEntry entry = scene.volume().table[1];
  volume::TestMedium& away = scene.medium_of(entry.leg(1));
  away.is_cut_off = true;
  DeadHolder dead = co_await die_holding(scene, std::move(first));
  auto next = co_await scene.open("two");
  CO_ASSERT_TRUE(next);
  co_await scene.sleep(8_s);
  co_await scene.until_healed(*next);
  for (uint32_t extent = 0; extent < 5; ++extent) {
    const MapEntry now = scene.volume().table[extent];
    EXPECT_EQ(now.in_sync(), 3U) << extent;
    EXPECT_EQ(now.find(entry.leg(1).mega_vol), 3U) << extent;
  }
  EXPECT_GT(scene.arbiter->use()->pool().members().at(entry.leg(1).mega_vol).cleaning, 0U);
  EXPECT_TRUE(away.has_host("one"));
  away.is_cut_off = false;
  co_await scene.arbiter->settle();
  EXPECT_FALSE(away.has_host("one"));
  co_await next->close();
  co_await dead.drive->close();
  EXPECT_EQ(scene.audit(), "");
}
TEST(Volume, LegsLeaveADriveWhereNobodyCanBeFenced) { run_scene(never_comes_back); }

Task<void> lease_ends(Scene& scene) {
  co_await scene.create("v", 4, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  scene.link->is_away = true;
  co_await scene.sleep(8_s);
  EXPECT_TRUE(drive->is_held()) << "the lease is of ten seconds";
  co_await scene.sleep(2_s);
  EXPECT_FALSE(drive->is_held());
  std::vector<std::byte> data(4096);
  const Result<void> read = co_await drive->read(Lba(0), data);
  EXPECT_EQ(read.error().code(), Errc::kDenied);
  const Result<void> written = co_await drive->write(Lba(0), data);
  EXPECT_EQ(written.error().code(), Errc::kDenied);
  EXPECT_EQ(drive->concerns()[0].code, "lease_lost");
  scene.link->is_away = false;
  co_await drive->close();
}
TEST(Volume, StopsByItselfWhenItsLeaseEnds) { run_scene(lease_ends); }

Task<void> second_writer(Scene& scene) {
  co_await scene.create("v", 4, 2);
  auto one = co_await scene.open("one");
  CO_ASSERT_TRUE(one);
  co_await write_value(*one, 0, 1);
  auto two = co_await scene.open("two", true);
  CO_ASSERT_TRUE(two);
  co_await write_value(*two, 0, 2);
  std::vector<std::byte> data(4096, std::byte{7});
  const Result<void> late = co_await one->write(Lba(0), data);
  EXPECT_FALSE(late);
  co_await scene.sleep(3_s);
  EXPECT_FALSE(one->is_held());
  co_await expect_value(*two, 0, 2);
  co_await one->close();
  co_await expect_value(*two, 0, 2);
  co_await two->close();
}
TEST(Volume, AFormerHolderWritesNothing) { run_scene(second_writer); }

// A drive was replaced, so its holder looks for it again and again. Each time it registers there:
// so it asks first, and when it was expelled without knowing it registers no more.
Task<void> expelled_and_looking(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto one = co_await scene.open("one");
  CO_ASSERT_TRUE(one);
  co_await write_value(*one, 0, 1, 16);
  Result<void> flushed = co_await one->flush();
  EXPECT_TRUE(flushed);
  volume::TestMedium& replaced = scene.medium_of(scene.volume().table[1].leg(0));
  replaced.empty();
  co_await write_value(*one, 0, 2, 16);
  const uint64_t first = replaced.registrations("one");
  co_await scene.sleep(1_s);
  const uint64_t before = replaced.registrations("one");
  EXPECT_GT(before, first + 5) << "it looks for the drive while it has the volume";
  const std::unique_ptr<TestLink> away = std::move(scene.link);
  scene.link = std::make_unique<TestLink>(scene.arbiter->host());
  away->is_away = true;
  auto two = co_await scene.open("two", true);
  CO_ASSERT_TRUE(two);
  EXPECT_TRUE(one->is_held()) << "it cannot know";
  const uint64_t expelled = replaced.registrations("one");
  co_await scene.sleep(3_s);
  EXPECT_TRUE(one->is_held());
  EXPECT_EQ(replaced.registrations("one"), expelled);
  away->is_away = false;
  co_await scene.sleep(3_s);
  EXPECT_FALSE(one->is_held());
  EXPECT_EQ(replaced.registrations("one"), expelled);
  co_await expect_value(*two, 0, 2);
  co_await two->close();
  co_await one->close();
}
TEST(Volume, AFormerHolderDoesNotRegisterAtADriveThatWasReplaced) {
  run_scene(expelled_and_looking);
}

Task<void> scrubs(Scene& scene) {
  co_await scene.create("v", 4, 3);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1, 16);
  const MapEntry entry = scene.volume().table[1];
  const std::vector<std::byte> wrong(volume::TestMedium::kBlock, std::byte{9});
  scene.medium_of(entry.leg(0)).write(entry.leg(0).extent * kBlocks + 3, wrong);
  const auto said = co_await drive->tell({"scrub"});
  CO_ASSERT_TRUE(said);
  EXPECT_EQ(*said, "1 extents had legs that differed, and were mended");
  co_await expect_value(*drive, 3, 1);
  EXPECT_EQ(scene.compare_legs(), "");
  co_await drive->close();
}
TEST(Volume, AScrubMendsTheLegThatDiffersFromTwoOthers) { run_scene(scrubs); }

Task<void> compares(Scene& scene) {
  co_await scene.create("v", 4, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, kBlocks - 1, 1, 2);
  std::vector<std::byte> old(8192, std::byte{1});
  std::vector<std::byte> fresh(8192, std::byte{2});
  const drive::Request request{
      .kind = drive::Request::Kind::kCompareAndWrite, .lba = Lba(kBlocks - 1), .blocks = 2};
  const MutableBytes before(old);
  const MutableBytes after(fresh);
  Result<void> done = co_await drive->submit(request, {&before, 1}, {&after, 1});
  EXPECT_TRUE(done);
  co_await expect_value(*drive, kBlocks, 2);
  done = co_await drive->submit(request, {&before, 1}, {&after, 1});
  EXPECT_EQ(done.error().code(), Errc::kMismatch);
  co_await drive->close();
}
TEST(Volume, ComparesAndWritesOverExtents) { run_scene(compares); }

Task<void> grows(Scene& scene) {
  co_await scene.create("v", 4, 2);
  auto drive = co_await scene.open("one");
  CO_ASSERT_TRUE(drive);
  co_await write_value(*drive, 0, 1);
  Result<void> done = co_await drive->resize(6 * kBlocks);
  EXPECT_EQ(done.error().code(), Errc::kInvalid) << "nobody has promised it";
  done = co_await scene.arbiter->use()->resize("v", 6 * kTestExtent);
  EXPECT_TRUE(done);
  done = co_await drive->resize(6 * kBlocks);
  EXPECT_TRUE(done);
  co_await expect_value(*drive, 5 * kBlocks, 0);
  co_await write_value(*drive, 5 * kBlocks, 4);
  co_await expect_value(*drive, 5 * kBlocks, 4);
  co_await expect_value(*drive, 0, 1);
  co_await drive->close();
}
TEST(Volume, GrowsWhileItIsUsed) { run_scene(grows); }

}  // namespace
}  // namespace cairn::arbiter
