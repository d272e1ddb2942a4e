// SPDX-License-Identifier: Apache-2.0
// A guest outlives its server, which is killed with writes in memory that the guest has not
// flushed. Whoever serves the guest next says so by its first flush, once, if they may be lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "door/vhost_user/driver.h"
#include "door/vhost_user/server.h"
#include "drive/shared_drive.h"
#include "env/sharing.h"
#include "stack/stack.h"
#include "stack/subjects.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "testing/stack/files.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::door_tests {
namespace {

using door::vhost_user::BlkStatus;
using door::vhost_user::BlkType;
using door::vhost_user::Driver;
using door::vhost_user::VhostServer;
using task::Task;

constexpr size_t kBlock = 4096;
constexpr uint64_t kSectors = kBlock / 512;
constexpr const char* kThin = "thin(file:d0,size=8M, virtual=16M)";
constexpr const char* kFile = "file:d0,size=4M";

env::Address socket() { return env::Address::parse("unix:/run/vhost").value(); }

Task<void> pass(env::Env& env, Duration time) {
  const Result<void> slept = co_await task::sleep_for(env, time);
  (void)slept;
}

// Serves a stack until it is stopped or killed.
Task<void> serve(env::Env& env, std::string stack) {
  drive::LeavesWithFiles leaves({{"drive.key", drive::testing_key(1)}});
  drive::Opened opened = co_await drive::open_stack(env, stack, leaves);
  if (!opened) {
    if (!env.stop_token().requested()) ADD_FAILURE() << opened.error().show(stack);
    co_return;
  }
  drive::SharedDrive source(env, std::move(*opened));
  VhostServer server(env);
  const Result<void> served =
      co_await server.serve({.drive = {.name = "d", .description = "", .source = &source},
                             .at = socket(),
                             .core = {},
                             .waiting = door::vhost_user::Waiting::kInterrupt});
  EXPECT_TRUE(served.has_value() || env.stop_token().requested());
  task::Event never;
  const Result<void> stopped = co_await never.wait(env.stop_token());
  EXPECT_FALSE(stopped.has_value());
  co_await server.drain(env.now() + 10_s);
  co_await server.close();
  co_await source.close(env);
}

// The guest, with a monitor that connects again and again.
class Guest {
 public:
  explicit Guest(env::Env& env, bool has_inflight = true)
      : env_(env), driver_(env, *env::sharing(env), {.has_inflight = has_inflight}) {
    EXPECT_TRUE(driver_.prepare().has_value());
    gate_.spawn(attend());
  }
  Task<void> end() {
    ending_.request();
    hang_up();
    co_await gate_.close();
    co_await driver_.close();
  }
  // False: the device says that it failed.
  Task<bool> write(uint64_t block, uint8_t value) {
    const std::vector<std::byte> data(kBlock, std::byte{value});
    const Result<BlkStatus> wrote = co_await driver_.write(block * kSectors, data, {});
    co_return wrote.has_value() && *wrote == BlkStatus::kOk;
  }
  Task<int> read(uint64_t block) {
    std::vector<std::byte> data(kBlock);
    const Result<BlkStatus> done = co_await driver_.read(block * kSectors, data, {});
    const bool is_one = std::ranges::all_of(data, [&](std::byte each) { return each == data[0]; });
    if (!done || *done != BlkStatus::kOk || !is_one) co_return -1;
    co_return std::to_integer<int>(data[0]);
  }
  Task<bool> flush() {
    const Result<BlkStatus> done = co_await driver_.call(BlkType::kFlush, 0, {}, {}, {});
    co_return done.has_value() && *done == BlkStatus::kOk;
  }
  // Once, with its next connection, which begins now.
  Task<void> turn_cache_off() {
    turns_off_ = true;
    hang_up();
    while (turns_off_) co_await pass(env_, 1_ms);
  }
  // The monitor's connection breaks; the server lives.
  void hang_up() { leaving_->request(); }

 private:
  Task<void> attend() {
    while (!ending_.requested()) {
      leaving_.emplace();
      Result<void> connected = co_await driver_.connect(socket(), ending_.token());
      if (connected && turns_off_) {
        connected = co_await driver_.set_writeback(false, ending_.token());
        turns_off_ = !connected.has_value();
      }
      if (connected) co_await driver_.until_gone(leaving_->token());
      driver_.hang_up();
      co_await pass(env_, 1_ms);
    }
  }

  env::Env& env_;
  Driver driver_;
  bool turns_off_ = false;
  task::CancelSource ending_;
  std::optional<task::CancelSource> leaving_{std::in_place};  // this connection
  task::Gate gate_;
};

// The server's side of a machine.
class Machine {
 public:
  explicit Machine(std::string stack, uint64_t seed = 1) : cluster_({.seed = seed}) {
    server().start([stack](env::Env& env) { return serve(env, stack); });
  }
  void kill() {
    server().kill();
    server().restart();
  }
  void stop() {
    server().stop();
    EXPECT_TRUE(cluster_.run_until([this] { return !server().is_running(); }, 100_s));
    server().restart();
  }
  sim::Cluster& cluster() { return cluster_; }
  sim::Node& server() { return cluster_.node("server"); }

 private:
  sim::Cluster cluster_;
};

enum class End : uint8_t { kKilled, kKilledTwice, kStopped, kHungUp };

struct Case {
  std::string stack;
  End end = End::kKilled;
  bool flushes_first = false;
  bool is_through = false;  // the guest has turned its cache off
  bool has_inflight = true;
};

// What the first flush says after a write and such an end of the server; then whether the next one
// is well, and the drive works.
Task<void> live(env::Env& env, const Case& its, int& step, bool& first_flush) {
  Guest guest(env, its.has_inflight);
  EXPECT_TRUE(co_await guest.write(1, 7));
  if (its.is_through) {
    co_await guest.turn_cache_off();
    EXPECT_TRUE(co_await guest.flush());
    EXPECT_TRUE(co_await guest.write(2, 8));
  }
  if (its.flushes_first) EXPECT_TRUE(co_await guest.flush());
  if (its.end == End::kHungUp) guest.hang_up();
  step = 1;
  while (step == 1) co_await pass(env, 1_ms);
  // Its next server is not told that the cache is off: no front end does that.
  if (its.is_through) EXPECT_TRUE(co_await guest.write(3, 9));
  if (its.is_through) step = 3;
  while (step == 3) co_await pass(env, 1_ms);
  first_flush = co_await guest.flush();
  if (first_flush && its.has_inflight && !its.stack.starts_with("mem:")) {
    EXPECT_EQ(co_await guest.read(1), 7) << "a flush that succeeds covers it";
    if (its.is_through) EXPECT_EQ(co_await guest.read(2), 8);
    if (its.is_through) EXPECT_EQ(co_await guest.read(3), 9);
  }
  EXPECT_TRUE(co_await guest.flush()) << "a loss is told once";
  EXPECT_TRUE(co_await guest.write(1, 9));
  EXPECT_TRUE(co_await guest.flush());
  EXPECT_EQ(co_await guest.read(1), 9);
  co_await guest.end();
  step = 5;
}

bool first_flush_after(const Case& its) {
  Machine machine(its.stack);
  int step = 0;
  bool first_flush = false;
  sim::Cluster& cluster = machine.cluster();
  sim::Node& guest = cluster.node("guest", {.beside = "server"});
  guest.start([&](env::Env& env) { return live(env, its, step, first_flush); });
  EXPECT_TRUE(cluster.run_until([&] { return step == 1; }, 100_s));
  if (its.end == End::kKilled || its.end == End::kKilledTwice) machine.kill();
  if (its.end == End::kKilledTwice) {
    cluster.run_for(1_s);
    machine.kill();
  }
  if (its.end == End::kStopped) machine.stop();
  step = 2;
  if (its.is_through) {
    EXPECT_TRUE(cluster.run_until([&] { return step == 3; }, 100_s));
    machine.kill();
    step = 4;
  }
  EXPECT_TRUE(cluster.run_until([&] { return step == 5; }, 100_s));
  machine.server().stop();
  EXPECT_TRUE(cluster.run_until_idle(100_s));
  return first_flush;
}

TEST(VhostLoss, IsToldByTheFirstFlushAfterAKill) {
  EXPECT_FALSE(first_flush_after({.stack = kThin}));
  EXPECT_FALSE(first_flush_after({.stack = kThin, .end = End::kKilledTwice}));
  EXPECT_FALSE(first_flush_after({.stack = "mem:size=1M"}));
}

TEST(VhostLoss, OfAMediumIsOneOfWhatWasFlushedToo) {
  EXPECT_FALSE(first_flush_after({.stack = "mem:size=1M", .flushes_first = true}));
}

TEST(VhostLoss, IsNotToldOfWhatWasKept) {
  EXPECT_TRUE(first_flush_after({.stack = kFile}));
  EXPECT_TRUE(first_flush_after({.stack = "mirror(file:d0,size=4M, file:d1,size=4M)"}));
  EXPECT_TRUE(first_flush_after({.stack = kFile, .end = End::kKilledTwice}));
}

TEST(VhostLoss, IsNotToldOfWhatWasFlushed) {
  EXPECT_TRUE(first_flush_after({.stack = kThin, .flushes_first = true}));
  EXPECT_TRUE(first_flush_after({.stack = kThin, .is_through = true}));
}

TEST(VhostLoss, IsNoneWhenTheServerEndsInGoodOrderOrGoesOn) {
  EXPECT_TRUE(first_flush_after({.stack = kThin, .end = End::kStopped}));
  EXPECT_TRUE(first_flush_after({.stack = kThin, .end = End::kHungUp}));
  EXPECT_TRUE(first_flush_after({.stack = "mem:size=1M", .end = End::kHungUp}));
}

// Without the memory that outlives the server nobody can know (docs/door.md).
TEST(VhostLoss, IsNotKnownWithoutMemoryThatOutlivesTheServer) {
  EXPECT_TRUE(first_flush_after({.stack = kThin, .has_inflight = false}));
}

// ---- at any moment, over every service

// What a guest knows of its blocks: what each must hold, or may.
class Books {
 public:
  explicit Books(size_t blocks) : may_(blocks, {0}) {}
  size_t size() const { return may_.size(); }
  void wrote(size_t block, int value) {
    may_[block].insert(value);
    last_[block] = value;
  }
  // All that completed before it is there, and stays.
  void flushed() {
    for (const auto& [block, value] : last_) may_[block] = {value};
    last_.clear();
  }
  void failed() { last_.clear(); }
  bool holds(size_t block, int value) {
    if (!may_[block].contains(value)) return false;
    if (!last_.contains(block)) may_[block] = {value};
    return true;
  }

 private:
  std::vector<std::set<int>> may_;
  std::map<size_t, int> last_;  // of blocks that were written since the last flush
};

struct Told {
  uint64_t flushes = 0;
  uint64_t failures = 0;
  bool is_over = false;
};

// Writes some blocks, flushes, and reads all after each flush. What a flush that failed leaves is
// settled by the next one that succeeds.
Task<void> live_on(env::Env& env, Told& told) {
  constexpr size_t kBlocks = 24;
  Guest guest(env);
  Books books(kBlocks);
  int value = 0;
  while (told.flushes < 40) {
    const uint64_t count = 1 + env.rng().below(6);
    for (uint64_t i = 0; i < count; ++i) {
      const size_t block = env.rng().below(kBlocks);
      value = value % 250 + 1;
      EXPECT_TRUE(co_await guest.write(block, static_cast<uint8_t>(value)));
      books.wrote(block, value);
      co_await pass(env, Duration{static_cast<int64_t>(env.rng().below(2'000'000))});
    }
    const bool is_ok = co_await guest.flush();
    ++told.flushes;
    if (!is_ok) {
      ++told.failures;
      books.failed();
      EXPECT_TRUE(co_await guest.flush() || co_await guest.flush()) << "told once for each kill";
    } else {
      books.flushed();
    }
    for (size_t block = 0; block < kBlocks; ++block) {
      const int found = co_await guest.read(block);
      EXPECT_TRUE(books.holds(block, found))
          << "block " << block << " holds " << found << ", and no flush has said so";
    }
  }
  co_await guest.end();
  told.is_over = true;
}

class VhostLosses : public testing::TestWithParam<stack::Subject> {};

TEST_P(VhostLosses, AreToldBeforeAFlushCoversThem) {
  for (const uint64_t seed : sim::seeds_to_run(5)) {
    Rng rng(seed);
    Told told;
    Machine machine(GetParam().stack, seed);
    sim::Cluster& cluster = machine.cluster();
    sim::Node& guest = cluster.node("guest", {.beside = "server"});
    guest.start([&](env::Env& env) { return live_on(env, told); });
    while (!told.is_over && !testing::Test::HasFailure()) {
      const auto lives = Duration{static_cast<int64_t>(20'000'000 + rng.below(200'000'000))};
      const Time until = cluster.now() + lives;
      ASSERT_TRUE(
          cluster.run_until([&] { return told.is_over || cluster.now() >= until; }, 1000_s));
      if (!told.is_over) machine.kill();
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << GetParam().stack << ", seed " << seed;
    machine.server().stop();
    EXPECT_TRUE(cluster.run_until_idle(100_s));
  }
}

INSTANTIATE_TEST_SUITE_P(Services, VhostLosses, testing::ValuesIn(stack::every_service()),
                         stack::subject_name);

}  // namespace
}  // namespace cairn::door_tests
