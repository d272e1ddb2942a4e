// SPDX-License-Identifier: Apache-2.0
#include "arbiter/pool_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/own_counters.h"
#include "meta/local_store.h"
#include "testing/sim_test.h"

namespace cairn::arbiter {
namespace {

using task::Task;

constexpr uint64_t kExtentBytes = volume::kExtentBytesMin;
constexpr MegaVolId kDrive{0};

// Keeps what it is to clear.
class KeptExtents final : public FreedExtents {
 public:
  void add(const MegaVolInfo& drive, Cleaning what) override {
    EXPECT_EQ(drive.id, kDrive);
    kept.push_back(std::move(what));
  }
  std::vector<Cleaning> kept;
};

// A leadership and the pool that it read.
struct Leader {
  explicit Leader(std::unique_ptr<meta::Leadership> its_leadership)
      : leadership(std::move(its_leadership)) {}
  std::unique_ptr<meta::Leadership> leadership;
  KeptExtents freed;
  std::unique_ptr<PoolStore> store;
};

Task<std::unique_ptr<Leader>> lead(env::Env& env, meta::Store& store, std::string host) {
  meta::Election election(env, store, {.key = kLeaderKey, .value = host, .ttl = 1_s});
  Result<std::unique_ptr<meta::Leadership>> leadership = co_await election.campaign();
  if (!leadership) co_return nullptr;
  auto leader = std::make_unique<Leader>(std::move(*leadership));
  leader->store = std::make_unique<PoolStore>(env, store, *leader->leadership, std::move(host));
  const Result<void> read = co_await leader->store->read(kExtentBytes, leader->freed, {});
  EXPECT_TRUE(read) << (read ? "" : read.error().text());
  co_return leader;
}

Task<Result<void>> add_drive(PoolStore& store) {
  const DriveRecord record{.info = {.id = kDrive, .uri = "m0", .extents = 9}, .unfenced = {}};
  meta::Batch batch;
  batch.put(mega_vol_key(kDrive), encode(record));
  const Result<void> done = co_await store.commit(std::move(batch));
  if (!done) co_return done;
  co_return store.pool().add(record);
}

// "v", whose first extent has one leg.
Task<Result<void>> add_volume(env::Env& env, PoolStore& store) {
  PoolRecord pool = store.pool().record;
  VolumeRecord record{.id = VolumeId(pool.next_volume++), .name = "v", .extents = 4};
  record.family = record.id;
  meta::Batch batch;
  batch.put(kPoolKey, encode(pool)).put(volume_key("v"), encode(record));
  Result<void> done = co_await store.commit(std::move(batch));
  if (!done) co_return done;
  store.pool().record = pool;
  done = store.pool().add(record);
  if (!done) co_return done;
  const OwnCounters loads(env, store.pool());
  const Result<MapEntry> entry =
      store.pool().reserve(*store.pool().volume("v"), 1, {}, 1, false, loads);
  if (!entry) co_return fail(entry.error());
  std::vector<Change> changes{{.extent = 1, .entry = *entry, .copy = {}}};
  co_return co_await store.commit_changes(record.id, std::move(changes));
}

SIM_TEST(PoolStore, APoolIsMadeOnceAndReadFromThenOn) {
  const std::unique_ptr<meta::Store> meta = meta::memory_store(env);
  const std::unique_ptr<Leader> first = co_await lead(env, *meta, "host.1");
  CO_ASSERT_TRUE(first);
  EXPECT_EQ(first->store->pool().record.extent_bytes, kExtentBytes);
  EXPECT_EQ(first->store->former_writer(), "") << "nobody led before";
  const volume::MegaVolPool made = first->store->identity();
  co_await first->leadership->resign();

  const std::unique_ptr<Leader> second = co_await lead(env, *meta, "host.2");
  CO_ASSERT_TRUE(second);
  EXPECT_EQ(second->store->identity().uuid, made.uuid);
  EXPECT_EQ(second->store->former_writer(), "host.1");
  const Result<void> said = co_await second->store->become_writer();
  EXPECT_TRUE(said);
  EXPECT_EQ(second->store->former_writer(), "");
  co_await second->leadership->resign();

  const std::unique_ptr<Leader> third = co_await lead(env, *meta, "host.3");
  CO_ASSERT_TRUE(third);
  EXPECT_EQ(third->store->former_writer(), "host.2");
  co_await third->leadership->resign();
  co_await meta->close();
}

SIM_TEST(PoolStore, ChangesNothingOnceAnotherLeads) {
  const std::unique_ptr<meta::Store> meta = meta::memory_store(env);
  const std::unique_ptr<Leader> first = co_await lead(env, *meta, "host.1");
  CO_ASSERT_TRUE(first);
  co_await first->leadership->resign();
  const std::unique_ptr<Leader> second = co_await lead(env, *meta, "host.2");
  CO_ASSERT_TRUE(second);

  // It has not heard of that; its commit is refused.
  const Result<void> added = co_await add_drive(*first->store);
  CO_ASSERT_TRUE(!added);
  EXPECT_EQ(added.error(), Errc::kTimedOut);
  EXPECT_TRUE(first->store->pool().members().empty());
  EXPECT_FALSE(first->store->is_working());
  EXPECT_TRUE(first->store->stop_token().requested());
  const Result<task::Units> turn = co_await first->store->take_turn();
  CO_ASSERT_TRUE(!turn);
  EXPECT_EQ(turn.error(), Errc::kUnreachable);
  const Result<void> leads = co_await first->store->confirm_leading();
  CO_ASSERT_TRUE(!leads);
  EXPECT_EQ(leads.error(), Errc::kUnreachable);

  const Result<std::optional<meta::Entry>> entry = co_await meta->get(mega_vol_key(kDrive));
  EXPECT_TRUE(entry && !*entry);
  co_await second->leadership->resign();
  co_await meta->close();
}

SIM_TEST(PoolStore, AnExtentThatNobodyHasIsFreeWhenItIsCleared) {
  const std::unique_ptr<meta::Store> meta = meta::memory_store(env);
  const std::unique_ptr<Leader> first = co_await lead(env, *meta, "host.1");
  CO_ASSERT_TRUE(first);
  PoolStore& store = *first->store;
  Result<void> done = co_await add_drive(store);
  EXPECT_TRUE(done);
  done = co_await add_volume(env, store);
  EXPECT_TRUE(done) << (done ? "" : done.error().text());
  const Volume& volume = *store.pool().volume("v");
  const uint32_t extent = volume.table[1].leg(0).extent;
  EXPECT_TRUE(first->freed.kept.empty());

  done = co_await store.commit_changes(volume.record.id, {nothing_at(volume, 1)});
  EXPECT_TRUE(done);
  CO_ASSERT_TRUE(first->freed.kept.size() == 1);
  EXPECT_EQ(first->freed.kept[0].extents, std::vector<uint32_t>{extent});
  EXPECT_TRUE(store.pool().member(kDrive)->extents.is_used(extent)) << "it is not clear yet";
  co_await first->leadership->resign();

  // What nobody has cleared is for the next one to clear.
  const std::unique_ptr<Leader> second = co_await lead(env, *meta, "host.2");
  CO_ASSERT_TRUE(second);
  CO_ASSERT_TRUE(second->freed.kept.size() == 1);
  const Cleaning what = second->freed.kept[0];
  EXPECT_EQ(what.extents, std::vector<uint32_t>{extent});
  EXPECT_TRUE(second->store->pool().member(kDrive)->extents.is_used(extent));
  done = co_await second->store->commit_cleaned(what.key, what.extents);
  EXPECT_TRUE(done);
  EXPECT_FALSE(second->store->pool().member(kDrive)->extents.is_used(extent));
  co_await second->leadership->resign();

  const std::unique_ptr<Leader> third = co_await lead(env, *meta, "host.3");
  CO_ASSERT_TRUE(third);
  EXPECT_TRUE(third->freed.kept.empty());
  EXPECT_FALSE(third->store->pool().member(kDrive)->extents.is_used(extent));
  co_await third->leadership->resign();
  co_await meta->close();
}

}  // namespace
}  // namespace cairn::arbiter
