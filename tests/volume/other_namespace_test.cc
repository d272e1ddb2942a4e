// SPDX-License-Identifier: Apache-2.0
// A box that serves a drive of a volume as another namespace than before: the number stays, the
// UUID is another one. Whoever has the volume open finds the drive again, or that it is blank.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "fabric/target/target.h"
#include "meta/local_store.h"
#include "meta/state.h"
#include "nvme/controller/registry.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "tests/volume/mail_link.h"
#include "volume/boxes/nvme_source.h"
#include "volume/boxes/reservation_fence.h"
#include "volume/volume_drive.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::volume_tests {
namespace {

using arbiter::ArbiterHost;
using task::Task;
using volume::VolumeDrive;

constexpr uint64_t kExtentBytes = volume::kExtentBytesMin;
constexpr size_t kBoxes = 4;
constexpr size_t kPulled = 0;
constexpr uint64_t kBlocks = 32;  // two extents

std::string nqn_of(size_t box) { return fmt::format("nqn.2026-11.io.cairn:box{}", box); }

Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

// Four boxes, of which one changes what it serves when it is told to, an arbiter, and a client that
// writes all the time.
class Rack {
 public:
  explicit Rack(uint64_t seed) : cluster_({.seed = seed}) {
    for (size_t i = 0; i < kBoxes; ++i) {
      box(i).start([this, i](env::Env& env) { return serve(env, i); });
    }
    cluster_.node("arbiter").start([this](env::Env& env) { return run_arbiter(env); });
    cluster_.node("client").start([this](env::Env& env) { return run_client(env); });
  }

  sim::Cluster& cluster() { return cluster_; }
  [[nodiscard]] bool writes() {
    const uint64_t enough = writes_ + 100;
    return cluster_.run_until([this, enough] { return writes_ >= enough; }, 60_s);
  }
  // The namespace goes; what is served there from now on is this file.
  void pull() { is_pulled_ = true; }
  void put_in(std::string file, uint8_t uuid) {
    file_ = std::move(file);
    uuid_ = uuid;
    is_pulled_ = false;
  }
  // Every leg has everything again, on drives that answer.
  [[nodiscard]] bool becomes_well() {
    return cluster_.run_until([this] { return is_well_; }, 60_s);
  }
  [[nodiscard]] bool is_checked() {
    must_check_ = true;
    return cluster_.run_until([this] { return is_checked_; }, 60_s);
  }
  uint64_t relocated() const { return relocated_; }
  uint64_t resynced() const { return resynced_; }

 private:
  sim::Node& box(size_t index) { return cluster_.node(fmt::format("box{}", index)); }

  nvme::NamespaceOptions space_of(size_t index) const {
    nvme::NamespaceOptions space{.nsid = 1};
    const std::string file = index == kPulled ? file_ : "d0";
    space.drive = drive::Spec::parse(fmt::format("file:{},size=1M,direct=off", file)).value();
    space.uuid = {index == kPulled ? uuid_ : uint8_t{1}, 7, 7};
    return space;
  }
  Task<void> serve(env::Env& env, size_t index) {
    nvme::Registry registry(env);
    fabric::Target target(env, registry);
    nvme::SubsystemOptions subsystem;
    subsystem.nqn = nqn_of(index);
    EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
    EXPECT_TRUE(target.listen(box(index).address(4420)).has_value());
    bool is_there = false;
    while (!env.stop_token().requested()) {
      const bool must_be = index != kPulled || !is_pulled_;
      if (must_be && !is_there) {
        const Result<uint32_t> added =
            co_await registry.add_namespace(subsystem.nqn, space_of(index));
        EXPECT_TRUE(added.has_value()) << (added ? "" : added.error().text());
      } else if (!must_be && is_there) {
        const Result<void> removed = co_await registry.remove_namespace(subsystem.nqn, 1);
        EXPECT_TRUE(removed.has_value());
      }
      is_there = must_be;
      co_await nap(env, 10_ms);
    }
    co_await target.close();
    co_await registry.close();
  }

  Task<void> run_arbiter(env::Env& env) {
    meta::LocalStore store(env, state_);
    {
      volume::NvmeSource source(env);
      volume::ReservationFence fence(env, source);
      ArbiterHost host(
          env, {.store = store, .source = source, .fence = fence},
          {.arbiter = {.host = "arbiter", .retry = 100_ms, .extent_bytes = kExtentBytes},
           .election_ttl = 1_s});
      task::Gate gate;
      gate.spawn(host.run());
      gate.spawn(make_pool(env, host));
      co_await answer_letters(env, mail_, "arbiter", host, env.stop_token());
      host.stop();
      co_await gate.close();
    }
    co_await store.close();
  }
  Task<void> make_pool(env::Env& env, ArbiterHost& host) {
    size_t added = 0;
    while (!env.stop_token().requested() && !is_made_) {
      if (Result<ArbiterHost::Use> arbiter = host.use(); arbiter) {
        while (added < kBoxes) {
          const std::string uri = fmt::format("nvme-tcp://{}/{}?nsid=1",
                                              box(added).address(4420).text(), nqn_of(added));
          const Result<volume::MegaVolInfo> drive =
              co_await (*arbiter)->add_mega_vol({.uri = uri}, env.stop_token());
          if (!drive) break;
          ++added;
        }
        const Result<arbiter::VolumeRecord> made =
            co_await (*arbiter)->create({.name = "v", .bytes = 2 * kExtentBytes, .replicas = 3});
        is_made_ = added == kBoxes && made.has_value();
      }
      co_await nap(env, 50_ms);
    }
  }

  Task<void> run_client(env::Env& env) {
    MailLink link(env, mail_, {"arbiter"});
    volume::NvmeSource source(env);
    std::unique_ptr<VolumeDrive> drive;
    while (drive == nullptr && !env.stop_token().requested()) {
      co_await nap(env, 50_ms);
      if (!is_made_) continue;
      Result<std::unique_ptr<VolumeDrive>> opened = co_await VolumeDrive::open(
          env, link, source, "v", {.client = "client", .retry = 100_ms, .sweep = 300_ms},
          env.stop_token());
      if (opened) drive = std::move(*opened);
    }
    if (drive == nullptr) co_return;
    while (!must_check_ && !env.stop_token().requested()) {
      const uint64_t block = env.rng().below(kBlocks);
      const auto value = static_cast<std::byte>(1 + env.rng().below(255));
      const std::vector<std::byte> data(volume::kBlockBytes, value);
      const Result<void> done = co_await drive->write(Lba(block), data);
      EXPECT_TRUE(done || env.stop_token().requested()) << (done ? "" : done.error().text());
      if (done) written_.at(block) = value;
      if (done) ++writes_;
      relocated_ = drive->counters().relocated;
      resynced_ = drive->counters().resynced;
      is_well_ = drive->jobs().empty() && drive->concerns().empty();
      co_await nap(env, 1_ms);
    }
    co_await check(env, *drive);
    co_await drive->close();
  }
  Task<void> check(env::Env&, VolumeDrive& drive) {
    for (uint64_t block = 0; block < kBlocks; ++block) {
      std::vector<std::byte> back(volume::kBlockBytes);
      const Result<void> read = co_await drive.read(Lba(block), back);
      EXPECT_TRUE(read) << (read ? "" : read.error().text());
      EXPECT_EQ(back, std::vector<std::byte>(volume::kBlockBytes, written_.at(block))) << block;
    }
    const uint64_t mended = drive.counters().mended;
    const auto scrubbed = co_await drive.tell({"scrub"});
    EXPECT_TRUE(scrubbed.has_value());
    EXPECT_EQ(drive.counters().mended, mended) << "legs differed";
    is_checked_ = true;
  }

  meta::State state_;
  Mail mail_;
  std::array<std::byte, kBlocks> written_{};
  std::string file_ = "d0";
  uint8_t uuid_ = 1;
  uint64_t writes_ = 0;
  uint64_t relocated_ = 0;
  uint64_t resynced_ = 0;
  bool is_pulled_ = false;
  bool is_made_ = false;
  bool is_well_ = false;
  bool must_check_ = false;
  bool is_checked_ = false;
  sim::Cluster cluster_;  // whose nodes use all of it until they end
};

TEST(OtherNamespace, ADriveThatComesBackUnderAnotherUuidIsCaughtUp) {
  for (const uint64_t seed : sim::seeds_to_run(8)) {
    SCOPED_TRACE(seed);
    Rack rack(seed);
    ASSERT_TRUE(rack.writes()) << rack.cluster().report();
    for (const uint8_t uuid : {2, 3}) {
      const uint64_t before = rack.resynced();
      rack.pull();
      rack.cluster().run_for(1_s);
      ASSERT_TRUE(rack.writes()) << rack.cluster().report();
      rack.put_in("d0", uuid);
      rack.cluster().run_for(1_s);
      ASSERT_TRUE(rack.becomes_well()) << "legs stay stale\n" << rack.cluster().report();
      EXPECT_GT(rack.resynced(), before) << "what it lacked was copied";
    }
    EXPECT_EQ(rack.relocated(), 0U);
    ASSERT_TRUE(rack.is_checked()) << rack.cluster().report();
  }
}

TEST(OtherNamespace, ABlankDriveInItsPlaceIsFoundOutAndItsCopiesAreMadeElsewhere) {
  for (const uint64_t seed : sim::seeds_to_run(8)) {
    SCOPED_TRACE(seed);
    Rack rack(seed);
    ASSERT_TRUE(rack.writes()) << rack.cluster().report();
    rack.pull();
    rack.cluster().run_for(1_s);
    ASSERT_TRUE(rack.writes()) << rack.cluster().report();
    rack.put_in("blank", 2);
    rack.cluster().run_for(1_s);
    ASSERT_TRUE(rack.becomes_well()) << "it counts as away\n" << rack.cluster().report();
    EXPECT_GT(rack.relocated(), 0U);
    ASSERT_TRUE(rack.is_checked()) << rack.cluster().report();
  }
}

}  // namespace
}  // namespace cairn::volume_tests
