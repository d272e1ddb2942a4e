// SPDX-License-Identifier: Apache-2.0
// One lane per core and target, whatever the number of drives behind it.
#include "env/call.h"
#include "lanes/lane_test.h"
#include "task/when_all.h"
#include "testing/sim_test.h"

namespace cairn::lane_tests {
namespace {

using Drives = std::vector<std::unique_ptr<RemoteDrive>>;

class Sharing : public LaneTest {
 public:
  using Scene = LaneScene<Sharing>;
  void run(Body<Sharing> body) { on_host(*this, body); }
  // An admin and an I/O queue each.
  uint64_t connections(size_t index = 0) { return box(index).target().connections(); }
};

Task<void> close_all(Drives& drives) {
  for (const auto& drive : drives) co_await drive->close();
  drives.clear();
}

Task<void> write_and_verify(RemoteDrive& drive, uint64_t seed) {
  const std::vector<std::byte> data = random_bytes(4 * kBlock, seed);
  std::vector<std::byte> back(data.size());
  const Result<void> written = co_await drive.write(Lba(8), data);
  EXPECT_OK(written);
  const Result<void> got = co_await drive.read(Lba(8), back);
  EXPECT_OK(got);
  EXPECT_EQ(back, data);
}

TEST_F(Sharing, NamespacesOfOneSubsystemShareALane) {
  box_options.namespaces = 5;
  run([](env::Env& env, Sharing& test) -> Task<void> {
    HostPool pool(env);
    Drives drives;
    for (uint32_t nsid = 1; nsid <= 5; ++nsid) {
      drives.push_back(co_await open_drive(pool, test.uri(0, nsid)));
    }
    drives.push_back(co_await open_drive(pool, test.uri(0, 3)));  // and one of them twice
    EXPECT_EQ(test.connections(), 2u);
    EXPECT_EQ(pool.entries().size(), 1u);
    EXPECT_EQ(pool.entries()[0].users, 6u);
    std::vector<Task<void>> work;
    for (size_t i = 0; i < 5; ++i) work.push_back(write_and_verify(*drives[i], i));
    co_await task::when_all(std::move(work));
    for (size_t i = 0; i < 5; ++i) {
      std::vector<std::byte> back(4 * kBlock);
      const Result<void> got = co_await drives[i]->read(Lba(8), back);
      EXPECT_OK(got);
      EXPECT_EQ(back, random_bytes(4 * kBlock, i)) << "namespace " << i + 1;
    }
    EXPECT_EQ(test.connections(), 2u);
    co_await close_all(drives);
    EXPECT_TRUE(pool.entries().empty());
  });
}

TEST_F(Sharing, CoresTimesTargetsIsTheNumberOfLanes) {
  box_count = 3;
  host_cores = 4;
  box_cores = 2;
  box_options.namespaces = 2;
  run([](env::Env& env, Sharing& test) -> Task<void> {
    struct Mine {
      std::unique_ptr<HostPool> pool;
      Drives drives;
    };
    std::vector<Mine> cores(env.core_count());
    const auto open_on = [](env::Env& there, Mine& mine, Sharing& its) -> Task<void> {
      mine.pool = std::make_unique<HostPool>(there);
      for (size_t box = 0; box < its.box_count; ++box) {
        for (const uint32_t nsid : {1, 2, 1}) {
          mine.drives.push_back(co_await open_drive(*mine.pool, its.uri(box, nsid)));
        }
      }
    };
    const auto close_on = [](Mine& mine) -> Task<void> {
      co_await close_all(mine.drives);
      mine.pool.reset();
    };
    for (uint32_t i = 0; i < env.core_count(); ++i) {
      co_await env::call_on(env, CoreId(i),
                            [&](env::Env& there) { return open_on(there, cores[i], test); });
    }
    for (size_t box = 0; box < test.box_count; ++box) {
      EXPECT_EQ(test.connections(box), 2u * env.core_count()) << "box " << box;
    }
    for (const Mine& mine : cores) EXPECT_EQ(mine.pool->entries().size(), test.box_count);
    for (uint32_t i = 0; i < env.core_count(); ++i) {
      co_await env::call_on(env, CoreId(i), [&](env::Env&) { return close_on(cores[i]); });
    }
  });
}

SIM_TEST_F(Sharing, DrivesThatWantOtherConnectionsGetThem) {
  HostPool pool(env);
  Drives drives;
  drives.push_back(co_await open_drive(pool, test.uri()));
  Uri other = test.uri();
  other.options.header_digest = true;
  drives.push_back(co_await open_drive(pool, other));
  other = test.uri();
  other.options.doorbell.mode = fabric::DoorbellOptions::Mode::kOff;
  drives.push_back(co_await open_drive(pool, other));
  other = test.uri();
  other.options.host_nqn = "nqn.2026-11.io.cairn:another";
  drives.push_back(co_await open_drive(pool, other));
  EXPECT_EQ(pool.entries().size(), 4u);
  EXPECT_EQ(test.connections(), 8u);
  // What only concerns a drive's own requests makes no difference.
  other = test.uri();
  other.options.loss_timeout = 1_s;
  other.options.retries_max = 0;
  other.options.quiesce = 0_s;
  drives.push_back(co_await open_drive(pool, other));
  EXPECT_EQ(pool.entries().size(), 4u);
  co_await close_all(drives);
}

TEST_F(Sharing, AHostWithoutANameHasOne) {
  options.host_nqn.clear();
  options.host_id = {};
  box_options.namespaces = 2;
  run([](env::Env& env, Sharing& test) -> Task<void> {
    HostPool pool(env);
    Drives drives;
    drives.push_back(co_await open_drive(pool, test.uri(0, 1)));
    drives.push_back(co_await open_drive(pool, test.uri(0, 2)));
    EXPECT_EQ(test.connections(), 2u);
    co_await close_all(drives);
  });
}

TEST_F(Sharing, OneDriveThatClosesLeavesTheOthersAlone) {
  box_options.namespaces = 2;
  run([](env::Env& env, Sharing& test) -> Task<void> {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> stays = co_await open_drive(pool, test.uri(0, 1));
    for (int i = 0; i < 5; ++i) {
      const std::unique_ptr<RemoteDrive> goes = co_await open_drive(pool, test.uri(0, 2));
      Task<void> during = write_and_verify(*stays, i);
      co_await write_and_verify(*goes, 100 + i);
      co_await goes->close();
      co_await during;
      EXPECT_EQ(test.connections(), 2u);
    }
    EXPECT_EQ(stays->paths()[0]->controller().sessions(), 1u);
    co_await stays->close();
  });
}

SIM_TEST_F(Sharing, ANamespaceThatIsNotThereHarmsNobody) {
  HostPool pool(env);
  const std::unique_ptr<RemoteDrive> stays = co_await open_drive(pool, test.uri());
  Result<std::unique_ptr<RemoteDrive>> missing = co_await RemoteDrive::open(pool, test.uri(0, 7));
  EXPECT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error(), Errc::kNotFound);
  co_await write_and_verify(*stays, 1);
  EXPECT_EQ(stays->paths()[0]->controller().sessions(), 1u);
  EXPECT_EQ(pool.entries()[0].users, 1u);
  co_await stays->close();
}

TEST_F(Sharing, ALaneThatIsLostComesBackForAll) {
  box_options.namespaces = 3;
  run([](env::Env& env, Sharing& test) -> Task<void> {
    HostPool pool(env);
    Drives drives;
    for (uint32_t nsid = 1; nsid <= 3; ++nsid) {
      drives.push_back(co_await open_drive(pool, test.uri(0, nsid)));
    }
    for (uint64_t round = 0; round < 4; ++round) {
      std::vector<Task<void>> work;
      for (size_t i = 0; i < 3; ++i) work.push_back(write_and_verify(*drives[i], round * 10 + i));
      test.cluster().reset_streams("host", test.box_name(0));
      co_await task::when_all(std::move(work));
      const Result<void> slept = co_await task::sleep_for(env, 1_s);
      EXPECT_OK(slept);
      EXPECT_EQ(test.connections(), 2u) << "round " << round;
    }
    for (const auto& drive : drives) EXPECT_GT(drive->paths()[0]->controller().sessions(), 4u);
    co_await close_all(drives);
  });
}

// A second drive is opened while the first waits for a target that is away: it does not have to
// wait for the end of a long pause, and both work when the target is back.
TEST_F(Sharing, WhoeverComesWhileTheTargetIsAwayMakesItTriedAtOnce) {
  box_options.namespaces = 2;
  options.reconnect_delay = options.reconnect_delay_max = 500_s;
  options.loss_timeout = Duration::max();
  run([](env::Env& env, Sharing& test) -> Task<void> {
    HostPool pool(env);
    const std::unique_ptr<RemoteDrive> first = co_await open_drive(pool, test.uri(0, 1));
    test.cluster().reset_streams("host", test.box_name(0));
    Task<void> waits = write_and_verify(*first, 1);
    const Result<void> slept = co_await task::sleep_for(env, 1_s);
    EXPECT_OK(slept);
    EXPECT_EQ(test.connections(), 0u);
    const Time before = env.now();
    const std::unique_ptr<RemoteDrive> second = co_await open_drive(pool, test.uri(0, 2));
    EXPECT_LT(env.now() - before, 1_s);
    co_await waits;
    EXPECT_EQ(test.connections(), 2u);
    co_await first->close();
    co_await second->close();
  });
}

// Each drive counts its own time without a path.
TEST_F(Sharing, DrivesHaveDeadlinesOfTheirOwn) {
  box_options.namespaces = 2;
  run([](env::Env& env, Sharing& test) -> Task<void> {
    HostPool pool(env);
    Uri hasty = test.uri(0, 1);
    hasty.options.loss_timeout = 2_s;
    Uri patient = test.uri(0, 2);
    patient.options.loss_timeout = 300_s;
    const std::unique_ptr<RemoteDrive> one = co_await open_drive(pool, hasty);
    const std::unique_ptr<RemoteDrive> two = co_await open_drive(pool, patient);
    EXPECT_EQ(pool.entries().size(), 1u);
    test.cluster().isolate(test.box_name(0));
    Task<void> waits = write_and_verify(*two, 2);
    std::vector<std::byte> block(kBlock);
    const Result<void> got = co_await one->read(Lba(0), block);
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(got.error(), Errc::kUnreachable);
    test.cluster().heal();
    co_await waits;
    co_await write_and_verify(*one, 1);
    co_await one->close();
    co_await two->close();
  });
}

}  // namespace
}  // namespace cairn::lane_tests
