// SPDX-License-Identifier: Apache-2.0
// Boxes that are killed, lose power or come back empty under drives that stay connected: nothing
// that was flushed is lost, and what is lost is told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fabric/host/remote_drive.h"
#include "fabric/serve_drive.h"
#include "task/deadline.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::fabric_tests {
namespace {

const std::string kRestartNqn = "nqn.2026-11.io.cairn:restart";

// Opens what boxes serve.
class RemoteLeaves final : public drive::SourceLeaves {
 public:
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    const std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(text);
    if (!uri) co_return std::unexpected(uri.error());
    auto opened = co_await fabric::RemoteDrive::open(env, *uri);
    if (!opened) co_return std::unexpected(opened.error().text());
    co_return std::move(*opened);
  }
};

// How a box ends, and what is left of its drive when it comes back.
enum class End {
  kKilled,     // the process: its file has all that was written
  kPowerLost,  // its file has what was flushed, and some of the rest
  kEmptied,    // its drive was memory
};

class Boxes {
 public:
  Boxes(uint64_t seed, const std::string& service, size_t count, std::string drive,
        bool errors_are_wrong = true)
      : rng_(seed), cluster_({.seed = seed}), load_(options(service, count, errors_are_wrong)) {
    load_.on_open = [this](drive::Drive* opened) { drive_ = opened; };
    for (size_t i = 0; i < count; ++i) {
      const env::Address at = box(i).address(4420);
      box(i).start([at, drive](env::Env& env) { return serve_drive(env, at, kRestartNqn, drive); });
    }
    cluster_.run_for(1_ms);
    cluster_.node("host").start([this](env::Env& env) { return load_.live(env); });
  }

  sim::Node& box(size_t index) { return cluster_.node(fmt::format("box{}", index)); }
  void run_a_while() {
    cluster_.run_for(Duration{static_cast<int64_t>(rng_.between(1, 20)) * 1'000'000});
  }
  void end(size_t index, End how) {
    if (how == End::kPowerLost) {
      box(index).crash();
    } else {
      box(index).kill();
    }
  }
  void end_and_return(size_t index, End how) {
    end(index, how);
    // Sometimes it is back before anybody noticed, sometimes long after it was given up.
    if (rng_.bernoulli(0.7)) {
      cluster_.run_for(Duration{static_cast<int64_t>(rng_.below(50)) * 1'000'000});
    } else {
      cluster_.run_for(250_ms);
    }
    box(index).restart();
  }
  uint64_t fact(std::string_view name) const {
    for (const drive::Fact& fact : drive_->facts()) {
      if (fact.name == name) return fact.value;
    }
    return UINT64_MAX;
  }
  // Until every leg was asked since it came back, or dropped: requests are written to all.
  [[nodiscard]] bool goes_on() {
    const uint64_t wanted = load_.done() + 200;
    return cluster_.run_until([&] { return !load_.failure().empty() || load_.done() >= wanted; },
                              600_s);
  }
  // Until all legs are good and nothing is to be copied.
  [[nodiscard]] bool heals(size_t legs) {
    return cluster_.run_until(
        [&] {
          return !load_.failure().empty() ||
                 (drive_ != nullptr && fact("legs_good") == legs && fact("regions_to_copy") == 0);
        },
        600_s);
  }
  void stop() {
    cluster_.node("host").stop();
    EXPECT_TRUE(cluster_.run_until([&] { return !cluster_.node("host").is_running(); }, 600_s));
  }
  std::string failure() const {
    return load_.failure().empty() ? "" : load_.failure() + "\n" + cluster_.report();
  }
  uint64_t done() const { return load_.done(); }
  Rng& rng() { return rng_; }
  sim::Cluster& cluster() { return cluster_; }

 private:
  stack::LoadOptions options(const std::string& service, size_t count, bool errors_are_wrong) {
    std::string legs;
    for (size_t i = 0; i < count; ++i) {
      legs += fmt::format(
          "nvme-tcp://{}/{}?nsid=1&loss_timeout=200ms&kato=100ms&reconnect_delay_max=50ms, ",
          box(i).address(4420).text(), kRestartNqn);
    }
    return {.stack = fmt::format("{}({}retry_ms=50)", service, legs),
            .workers = 4,
            .requests = UINT64_MAX,
            .cancel_share = 0,
            .errors_are_wrong = errors_are_wrong,
            .leaves = &leaves_};
  }

  Rng rng_;
  sim::Cluster cluster_;
  RemoteLeaves leaves_;
  stack::StackLoad load_;
  drive::Drive* drive_ = nullptr;
};

struct Case {
  const char* name;
  const char* service;
  size_t legs;
  End end;
};

std::string drive_of(End end) {
  return end == End::kEmptied ? "mem:size=1M,block=4096" : "file:d0,size=1M,block=4096,direct=off";
}

class Restart : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, Restart,
                         testing::Values(Case{"MirrorKilled", "mirror", 2, End::kKilled},
                                         Case{"MirrorPowerLost", "mirror", 2, End::kPowerLost},
                                         Case{"MirrorEmptied", "mirror", 2, End::kEmptied},
                                         Case{"ParityKilled", "parity", 3, End::kKilled},
                                         Case{"ParityPowerLost", "parity", 3, End::kPowerLost},
                                         Case{"ParityEmptied", "parity", 3, End::kEmptied}),
                         [](const auto& info) { return info.param.name; });

// One box after the other: who uses the drive notices nothing.
TEST_P(Restart, OfOneBoxUnderAConnectedDriveLosesNothing) {
  for (const uint64_t seed : sim::seeds_to_run(12)) {
    Boxes boxes(seed, GetParam().service, GetParam().legs, drive_of(GetParam().end));
    for (int round = 0; round < 4; ++round) {
      ASSERT_TRUE(boxes.heals(GetParam().legs)) << seed << boxes.failure();
      boxes.run_a_while();
      boxes.end_and_return(boxes.rng().below(GetParam().legs), GetParam().end);
      ASSERT_TRUE(boxes.goes_on()) << seed << boxes.failure();
    }
    ASSERT_TRUE(boxes.heals(GetParam().legs)) << seed << boxes.failure();
    boxes.run_a_while();
    EXPECT_EQ(boxes.failure(), "") << seed;
    EXPECT_GT(boxes.done(), 200U);
    boxes.stop();
  }
}

// Parity logs what it changes before it changes it: also when all boxes lose power at once, nothing
// that was acknowledged is lost. Requests may fail meanwhile.
TEST(RestartOfAllBoxes, UnderParityLosesNothing) {
  for (const uint64_t seed : sim::seeds_to_run(20)) {
    Boxes boxes(seed, "parity", 3, drive_of(End::kPowerLost), false);
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(boxes.heals(3)) << seed << boxes.failure();
      boxes.run_a_while();
      for (size_t i = 0; i < 3; ++i) boxes.end(i, End::kPowerLost);
      boxes.cluster().run_for(Duration{static_cast<int64_t>(boxes.rng().below(900)) * 1'000'000});
      for (size_t i = 0; i < 3; ++i) boxes.box(i).restart();
      ASSERT_TRUE(boxes.goes_on()) << seed << boxes.failure();
    }
    ASSERT_TRUE(boxes.heals(3)) << seed << boxes.failure();
    boxes.run_a_while();
    EXPECT_EQ(boxes.failure(), "") << seed;
    boxes.stop();
  }
}

// --- a drive without redundancy ---------------------------------------------------------------

task::Task<Result<void>> write_block(drive::Drive& drive, uint64_t block, bool durable = false) {
  std::vector<std::byte> data(4096, std::byte{7});
  const MutableBytes piece = data;
  const drive::Request request{
      .kind = drive::Request::Kind::kWrite, .durable = durable, .lba = Lba(block), .blocks = 1};
  const Result<void> done = co_await drive.submit(request, {&piece, 1});
  co_return done;
}

// What a host does before its box loses power, and after the box is back.
class PlainDrive : public testing::Test {
 protected:
  using Step = task::Task<void> (*)(PlainDrive& test, drive::Drive& drive);

  void run(const std::string& drive, Step before, Step after) {
    sim::Cluster cluster;
    sim::Node& box = cluster.node("box");
    const env::Address at = box.address(4420);
    box.start([at, drive](env::Env& env) { return serve_drive(env, at, kRestartNqn, drive); });
    cluster.run_for(1_ms);
    cluster.node("host").start(
        [this, at, before, after](env::Env& env) { return use(env, at, before, after); });
    ASSERT_TRUE(cluster.run_until([this] { return is_ready_; }, 10_s)) << cluster.report();
    box.crash();
    cluster.run_for(10_ms);
    box.restart();
    is_back_ = true;
    EXPECT_TRUE(cluster.run_until([this] { return is_done_; }, 600_s)) << cluster.report();
  }

  task::Task<void> use(env::Env& env, env::Address at, Step before, Step after) {
    const fabric::Uri uri{.paths = {at}, .nqn = kRestartNqn, .nsid = 1};
    auto opened = co_await fabric::RemoteDrive::open(env, uri);
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    co_await before(*this, **opened);
    known = (*opened)->incarnation();
    is_ready_ = true;
    while (!is_back_) {
      const Result<void> slept = co_await task::sleep_for(env, 1_ms);
      EXPECT_TRUE(slept);
    }
    co_await after(*this, **opened);
    co_await (*opened)->close();
    is_done_ = true;
  }

 public:
  drive::Incarnation known;  // before

 private:
  bool is_ready_ = false;
  bool is_back_ = false;
  bool is_done_ = false;
};

const std::string kFile = "file:d0,size=1M,block=4096,direct=off";

task::Task<void> write_one(PlainDrive&, drive::Drive& drive) {
  const Result<void> done = co_await write_block(drive, 0);
  EXPECT_TRUE(done);
}

// Both flushes began before the loss was told, so both are told.
task::Task<void> expect_loss_once(PlainDrive& test, drive::Drive& drive) {
  task::Task<Result<void>> first = [](drive::Drive& flushed) -> task::Task<Result<void>> {
    const Result<void> done = co_await flushed.flush();
    co_return done;
  }(drive);
  Result<void> done = co_await drive.flush();
  EXPECT_TRUE(!done && done.error() == Errc::kIo);
  done = co_await first;
  EXPECT_TRUE(!done && done.error() == Errc::kIo);
  EXPECT_EQ(drive.incarnation().medium, test.known.medium);
  EXPECT_NE(drive.incarnation().opening, test.known.opening);
  done = co_await drive.flush();
  EXPECT_TRUE(done) << "it was told before";
}

TEST_F(PlainDrive, FailsTheFlushesThatCountOnWhatItsBoxLostAndNoMore) {
  run(kFile, write_one, expect_loss_once);
}

task::Task<void> write_and_flush(PlainDrive&, drive::Drive& drive) {
  Result<void> done = co_await write_block(drive, 0);
  EXPECT_TRUE(done);
  done = co_await drive.flush();
  EXPECT_TRUE(done);
  done = co_await write_block(drive, 1, true);
  EXPECT_TRUE(done);
}

task::Task<void> expect_nothing_lost(PlainDrive& test, drive::Drive& drive) {
  const Result<void> done = co_await drive.flush();
  EXPECT_TRUE(done);
  EXPECT_EQ(drive.incarnation(), test.known);
}

TEST_F(PlainDrive, DoesNotNoticeARestartWhenAllWasFlushed) {
  run(kFile, write_and_flush, expect_nothing_lost);
}

task::Task<void> expect_errors(PlainDrive& test, drive::Drive& drive) {
  std::vector<std::byte> data(4096);
  for (int i = 0; i < 3; ++i) {
    Result<void> done = co_await drive.read(Lba(0), data);
    EXPECT_TRUE(!done && done.error() == Errc::kIo);
    done = co_await write_block(drive, 1);
    EXPECT_TRUE(!done && done.error() == Errc::kIo);
    done = co_await drive.flush();
    EXPECT_TRUE(!done && done.error() == Errc::kIo);
  }
  EXPECT_NE(drive.incarnation().medium, test.known.medium);
}

TEST_F(PlainDrive, FailsEverythingWhenItsBoxComesBackEmpty) {
  run("mem:size=1M,block=4096", write_and_flush, expect_errors);
}

}  // namespace
}  // namespace cairn::fabric_tests
