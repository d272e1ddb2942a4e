// SPDX-License-Identifier: Apache-2.0
// Volumes over boxes that speak NVMe over TCP: whoever lost a volume while it stood still changes
// nothing when it goes on, whatever became of boxes and arbiters meanwhile.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
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
#include "task/when_all.h"
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
constexpr size_t kBoxes = 3;
constexpr uint64_t kBlocks = 32;  // that are written, in two extents

std::string nqn_of(size_t box) { return fmt::format("nqn.2026-11.io.cairn:box{}", box); }

// Reservations of all boxes, as they are kept over restarts.
class KeptReservations final : public nvme::ReservationStore {
 public:
  Task<Result<void>> save(std::string_view nqn, uint32_t, Bytes state) override {
    states_[std::string(nqn)] = std::vector<std::byte>(state.begin(), state.end());
    co_return Result<void>();
  }
  std::vector<std::byte> of(const std::string& nqn) { return states_[nqn]; }

 private:
  std::map<std::string, std::vector<std::byte>> states_;
};

Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

std::vector<std::byte> block_of(int value) {
  return std::vector<std::byte>(volume::kBlockBytes, static_cast<std::byte>(value));
}

// Three boxes, an arbiter and its store, client "a" that writes ones for as long as it can, and
// client "b" that takes the volume over when it is told to, and writes twos.
class BoxCluster {
 public:
  BoxCluster(uint64_t seed, bool boxes_remember)
      : boxes_remember_(boxes_remember), rng_(seed), cluster_({.seed = seed}) {
    for (size_t i = 0; i < kBoxes; ++i) {
      box(i).start([this, i](env::Env& env) { return serve(env, i); });
    }
    cluster_.node("arbiter").start([this](env::Env& env) { return run_arbiter(env); });
    cluster_.node("a").start([this](env::Env& env) { return run_first(env); });
  }

  sim::Cluster& cluster() { return cluster_; }
  sim::Node& box(size_t index) { return cluster_.node(fmt::format("box{}", index)); }
  Rng& rng() { return rng_; }
  Duration up_to(uint64_t ms) {
    return Duration{static_cast<int64_t>(rng_.below(ms * 1000)) * 1000};
  }
  void start_second() {
    cluster_.node("b").start([this](env::Env& env) { return run_second(env); });
  }
  [[nodiscard]] bool first_writes() {
    return cluster_.run_until([this] { return first_writes_ > 50; }, 60_s);
  }
  [[nodiscard]] bool second_wrote() {
    return cluster_.run_until([this] { return second_wrote_; }, 120_s);
  }
  // The first client goes on until it knows that it may not, and a while longer.
  [[nodiscard]] bool first_stops() {
    if (!cluster_.run_until([this] { return first_is_over_; }, 60_s)) return false;
    cluster_.run_for(2_s);
    return true;
  }
  // The second one reads everything and compares the legs.
  [[nodiscard]] bool second_checks() {
    must_check_ = true;
    return cluster_.run_until([this] { return is_checked_; }, 120_s);
  }
  uint64_t late_writes() const { return late_writes_; }

 private:
  Task<void> serve(env::Env& env, size_t index) {
    nvme::Registry registry(env);
    fabric::Target target(env, registry);
    nvme::SubsystemOptions subsystem;
    subsystem.nqn = nqn_of(index);
    subsystem.keep_reservations = boxes_remember_;
    if (boxes_remember_) subsystem.reservation_store = &kept_;
    EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
    nvme::NamespaceOptions space;
    space.drive = drive::Spec::parse("file:d0,size=1M,block=4096,direct=off").value();
    if (boxes_remember_) space.reservations = kept_.of(subsystem.nqn);
    const Result<uint32_t> added = co_await registry.add_namespace(subsystem.nqn, space);
    EXPECT_TRUE(added.has_value());
    EXPECT_TRUE(target.listen(box(index).address(4420)).has_value());
    task::Event never;
    [[maybe_unused]] const Result<void> stopped = co_await never.wait(env.stop_token());
    co_await target.close();
    co_await registry.close();
  }

  Task<void> run_arbiter(env::Env& env) {
    const std::unique_ptr<meta::Store> store = meta::local_store(env, state_);
    {
      volume::NvmeSource source(env);
      volume::ReservationFence fence(env, source);
      ArbiterHost host(env, {.store = *store, .source = source, .fence = fence},
                       {.arbiter = {.host = fmt::format("arbiter.{}", ++processes_),
                                    .lease = 20_s,
                                    .retry = 100_ms,
                                    .extent_bytes = kExtentBytes},
                        .election_ttl = 1_s});
      task::Gate gate;
      gate.spawn(host.run());
      gate.spawn(make_pool(env, host));
      co_await answer_letters(env, mail_, "arbiter", host, env.stop_token());
      host.stop();
      co_await gate.close();
    }
    co_await store->close();
  }
  Task<void> make_pool(env::Env& env, ArbiterHost& host) {
    while (!env.stop_token().requested()) {
      if (Result<ArbiterHost::Use> arbiter = host.use(); arbiter) {
        for (size_t i = 0; i < kBoxes; ++i) {
          const std::string uri =
              fmt::format("nvme-tcp://{}/{}", box(i).address(4420).text(), nqn_of(i));
          const auto is_it = [&](const auto& each) { return each.second.info.uri == uri; };
          if (std::ranges::any_of((*arbiter)->pool().members(), is_it)) continue;
          const Result<volume::MegaVolInfo> added =
              co_await (*arbiter)->add_mega_vol({.uri = uri}, env.stop_token());
          EXPECT_TRUE(added || env.stop_token().requested()) << (added ? "" : added.error().text());
        }
        [[maybe_unused]] const Result<arbiter::VolumeRecord> made =
            co_await (*arbiter)->create({.name = "v", .bytes = 2 * kExtentBytes, .replicas = 2});
      }
      co_await nap(env, 100_ms);
    }
  }

  Task<std::unique_ptr<VolumeDrive>> open(env::Env& env, MailLink& link, volume::NvmeSource& source,
                                          std::string client) {
    while (!env.stop_token().requested()) {
      Result<std::unique_ptr<VolumeDrive>> drive = co_await VolumeDrive::open(
          env, link, source, "v",
          {.client = client, .take_over = client == "b", .retry = 100_ms, .sweep = 300_ms},
          env.stop_token());
      if (drive) co_return std::move(*drive);
      co_await nap(env, 100_ms);
    }
    co_return nullptr;
  }

  Task<void> run_first(env::Env& env) {
    MailLink link(env, mail_, {"arbiter"});
    volume::NvmeSource source(env);
    std::unique_ptr<VolumeDrive> drive = co_await open(env, link, source, "a");
    if (drive == nullptr) co_return;
    std::vector<Task<void>> workers;
    for (uint64_t i = 0; i < 4; ++i) workers.push_back(write_ones(env, *drive, i));
    co_await task::when_all(std::move(workers));
    EXPECT_FALSE(drive->is_held());
    first_is_over_ = true;
    co_await drive->close();
  }
  // Also when requests fail: whether it is over, only the drive says.
  Task<void> write_ones(env::Env& env, VolumeDrive& drive, uint64_t worker) {
    const std::vector<std::byte> data = block_of(1);
    while (drive.is_held() && !env.stop_token().requested()) {
      const uint64_t block = env.rng().below(kBlocks / 4) * 4 + worker;
      const bool was_taken = second_wrote_;
      const Result<void> done = co_await drive.write(Lba(block), data);
      if (done) ++first_writes_;
      if (done && was_taken) ++late_writes_;
      if (!done) co_await nap(env, 5_ms);
    }
  }

  Task<void> run_second(env::Env& env) {
    MailLink link(env, mail_, {"arbiter"});
    volume::NvmeSource source(env);
    std::unique_ptr<VolumeDrive> drive = co_await open(env, link, source, "b");
    if (drive == nullptr) co_return;
    const std::vector<std::byte> data = block_of(2);
    for (uint64_t block = 0; block < kBlocks; ++block) {
      Result<void> done = fail(Errc::kUnreachable, "");
      while (!done && !env.stop_token().requested()) done = co_await drive->write(Lba(block), data);
    }
    const Result<void> flushed = co_await drive->flush();
    EXPECT_TRUE(flushed || env.stop_token().requested());
    second_wrote_ = true;
    while (!must_check_ || !drive->jobs().empty()) co_await nap(env, 20_ms);
    for (uint64_t block = 0; block < kBlocks; ++block) {
      std::vector<std::byte> back(volume::kBlockBytes);
      const Result<void> read = co_await drive->read(Lba(block), back);
      EXPECT_TRUE(read) << (read ? "" : read.error().text());
      EXPECT_EQ(back, data) << "block " << block << " was changed by who lost the volume";
    }
    const uint64_t mended = drive->counters().mended;
    const auto scrubbed = co_await drive->tell({"scrub"});
    EXPECT_TRUE(scrubbed.has_value());
    EXPECT_EQ(drive->counters().mended, mended) << "legs differed";
    co_await drive->close();
    is_checked_ = true;
  }

  const bool boxes_remember_;
  Rng rng_;
  sim::Cluster cluster_;
  KeptReservations kept_;
  meta::State state_;
  Mail mail_;
  uint64_t processes_ = 0;
  uint64_t first_writes_ = 0;
  uint64_t late_writes_ = 0;  // of the first client, that began when the second had written
  bool first_is_over_ = false;
  bool second_wrote_ = false;
  bool must_check_ = false;
  bool is_checked_ = false;
};

struct Case {
  const char* name;
  bool boxes_remember;
  bool boxes_restart;
  bool arbiter_restarts;
  bool box_dies_too = false;  // together with the client, and is back when the next one has written
};

// Else its bytes are printed, of which some were never written.
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class BoxFence : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, BoxFence,
                         testing::Values(Case{"Undisturbed", true, false, false},
                                         Case{"BoxesRestart", true, true, false},
                                         Case{"BoxesRestartAndForget", false, true, false},
                                         Case{"ArbiterRestarts", true, false, true},
                                         Case{"AllRestart", true, true, true},
                                         Case{"ABoxDiesToo", true, false, false, true},
                                         Case{"ABoxDiesTooAndForgets", false, false, false, true},
                                         Case{"ABoxDiesTooAndTheArbiterRestarts", true, false, true,
                                              true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(BoxFence, KeepsOutAClientThatStoodStillWhileItsVolumeWasTaken) {
  for (const uint64_t seed : sim::seeds_to_run(8)) {
    SCOPED_TRACE(seed);
    BoxCluster boxes(seed, GetParam().boxes_remember);
    ASSERT_TRUE(boxes.first_writes()) << boxes.cluster().report();
    boxes.cluster().run_for(boxes.up_to(50));
    boxes.cluster().node("a").pause();
    const size_t dead = boxes.rng().below(kBoxes);
    if (GetParam().box_dies_too) boxes.box(dead).kill();
    boxes.start_second();
    if (GetParam().arbiter_restarts) {
      boxes.cluster().run_for(boxes.up_to(20));
      boxes.cluster().node("arbiter").kill();
      boxes.cluster().run_for(boxes.up_to(500));
      boxes.cluster().node("arbiter").restart();
    }
    if (GetParam().boxes_restart) {
      if (boxes.rng().bernoulli(0.5)) {
        ASSERT_TRUE(boxes.second_wrote()) << boxes.cluster().report();
      }
      for (size_t i = 0; i < kBoxes; ++i) {
        boxes.box(i).kill();
        boxes.cluster().run_for(boxes.up_to(200));
        boxes.box(i).restart();
      }
    }
    ASSERT_TRUE(boxes.second_wrote()) << boxes.cluster().report();
    if (GetParam().box_dies_too) {
      boxes.box(dead).restart();
      boxes.cluster().run_for(boxes.up_to(2000));
    }
    boxes.cluster().node("a").resume();
    ASSERT_TRUE(boxes.first_stops()) << boxes.cluster().report();
    EXPECT_EQ(boxes.late_writes(), 0U);
    ASSERT_TRUE(boxes.second_checks()) << boxes.cluster().report();
  }
}

// What the box of an operator who uses another target may say.
TEST(Registration, RefusesABoxWithoutReservationsThatFence) {
  sim::Cluster cluster;
  bool is_done = false;
  cluster.node("host").start([&](env::Env& env) {
    return [](env::Env& world, bool& done) -> Task<void> {
      class Nobody final : public fabric::HostSession::User {
        void session_lost(const Error&) override {}
        void session_event(const nvme::AsynchronousEvent&) override {}
      } nobody;
      fabric::HostSession session(world, {}, nobody);
      volume::Registration registration(volume::box_identity("a"), false);
      fabric::NamespaceInfo info;
      info.reservations = nvme::Rescap::kWriteExclusive | nvme::Rescap::kPersist;
      const Result<void> entered = co_await registration.enter(session, info, {});
      EXPECT_TRUE(!entered && entered.error() == Errc::kUnsupported);
      co_await session.close();
      done = true;
    }(env, is_done);
  });
  EXPECT_TRUE(cluster.run_until([&] { return is_done; }, 10_s));
}

TEST(BoxIdentity, IsMadeFromTheNameAlone) {
  const volume::BoxIdentity one = volume::box_identity("client.1");
  EXPECT_EQ(one.host_id, volume::box_identity("client.1").host_id);
  EXPECT_EQ(one.key, volume::box_identity("client.1").key);
  EXPECT_NE(one.host_id, volume::box_identity("client.2").host_id);
  EXPECT_NE(one.key, volume::box_identity("client.2").key);
}

}  // namespace
}  // namespace cairn::volume_tests
