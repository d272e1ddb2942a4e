// SPDX-License-Identifier: Apache-2.0
// Parity whose legs fail, vanish and come back, under load and through power losses.
#include "service/raid/parity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "service/raid/parity_code.h"
#include "service/raid/parity_format.h"
#include "service/raid/parity_layout.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

constexpr size_t kBlock = 4096;

struct Shape {
  size_t legs = 3;
  size_t parity = 1;
  std::string_view leg_size = "2M";
  std::string_view options;
};

std::string stack_of(const Shape& shape) {
  std::string text = "parity(";
  for (size_t i = 0; i < shape.legs; ++i)
    text += fmt::format("file:d{},size={}, ", i, shape.leg_size);
  return text + fmt::format("parity={}, {})", shape.parity, shape.options);
}

sim::Medium& disk_of(sim::Node& node, size_t leg) { return node.disk(fmt::format("d{}", leg)); }

drive::ParityLabel label_of(const sim::Medium& disk) {
  drive::ParityLabel newest;
  for (uint64_t slot = 0; slot < 2; ++slot) {
    std::vector<std::byte> block(kBlock);
    disk.peek(slot * kBlock, block);
    const Result<drive::Label> label = drive::decode_label(drive::kParityLabel, block);
    if (label && label->generation > newest.generation) {
      newest = *drive::decode_parity_label(*label);
    }
  }
  return newest;
}

// Whether every row of these disks, given in any order, is a word of the code.
bool holds_codewords(sim::Node& node, const std::vector<size_t>& disks) {
  std::vector<std::vector<std::byte>> contents(disks.size());
  drive::ParityLabel shape;
  for (const size_t at : disks) {
    const drive::ParityLabel label = label_of(disk_of(node, at));
    shape = label;
    contents[label.own].resize(label.rows * kBlock);
    disk_of(node, at).peek(label.data_offset() * kBlock, contents[label.own]);
  }
  const size_t data = disks.size() - shape.parity;
  const drive::ParityLayout layout{.data = data, .legs = disks.size(), .chunk = shape.chunk_blocks};
  drive::ParityCode code(data, shape.parity);
  std::vector<std::vector<std::byte>> made(disks.size(), std::vector<std::byte>(kBlock));
  for (uint64_t row = 0; row < shape.rows; ++row) {
    std::vector<std::byte*> symbols(disks.size());
    for (size_t i = 0; i < disks.size(); ++i) {
      symbols[i] =
          i < data ? contents[layout.leg_of(row, i)].data() + row * kBlock : made[i].data();
    }
    code.make(code.data_set(), code.parity_set(), symbols, kBlock);
    for (size_t i = data; i < disks.size(); ++i) {
      const Bytes stored = Bytes(contents[layout.leg_of(row, i)]).subspan(row * kBlock, kBlock);
      if (!std::ranges::equal(stored, made[i])) return false;
    }
  }
  return true;
}
// A host with parity of simulated disks under load.
class ParityHost {
 public:
  ParityHost(uint64_t seed, const Shape& shape, LoadOptions load = {})
      : legs_(shape.legs), load_(with_stack(load, shape)), rng_(seed), cluster_({.seed = seed}) {
    load_.on_open = [this](drive::Drive* drive) {
      drive_ = drive;
      if (drive != nullptr && scrubs) tasks_.spawn(scrub(*drive));
    };
    node().start([this](env::Env& env) { return load_.live(env); });
  }

  sim::Node& node() { return cluster_.node("host"); }
  sim::Medium& disk(size_t leg) { return disk_of(node(), leg); }
  bool is_open() const { return drive_ != nullptr; }
  drive::ParityStatus status() const { return *drive::parity_status(*drive_); }

  void run_for(Duration duration) { cluster_.run_for(duration); }
  void run_a_while() { run_for(Duration{static_cast<int64_t>(rng_.between(1, 40'000)) * 1'000}); }
  [[nodiscard]] bool opens() {
    return cluster_.run_until([&] { return is_open() || !failure().empty(); }, 600_s) && is_open();
  }
  // Until it is open, and so many requests were served since.
  [[nodiscard]] bool serves(uint64_t requests) {
    const uint64_t target = done() + requests;
    return cluster_.run_until(
               [&] { return (is_open() && done() >= target) || !load_.failure().empty(); },
               600_s) &&
           load_.failure().empty();
  }
  [[nodiscard]] bool heals() {
    return cluster_.run_until(
        [&] { return is_open() && status().good == legs_ && status().regions_missed == 0; }, 600_s);
  }
  [[nodiscard]] bool loses(size_t legs) {
    return cluster_.run_until([&] { return is_open() && status().good + legs == legs_; }, 600_s);
  }
  void take_away(size_t leg) {
    disk(leg).fail_reads();
    disk(leg).fail_writes();
    disk(leg).fail_flushes();
  }
  // Power fails, and these legs are gone when it is back.
  void crash(const std::set<size_t>& lost = {}) {
    node().crash();
    drive_ = nullptr;
    load_.crashed();
    for (size_t leg = 0; leg < legs_; ++leg) disk(leg).heal();
    for (const size_t leg : lost) take_away(leg);
    node().restart();
  }
  // In good order, with all legs.
  void stop() {
    load_.stop_cancelling();
    cluster_.run_for(10_ms);  // deadlines that were set before pass
    EXPECT_TRUE(heals()) << failure();
    node().stop();
    EXPECT_TRUE(cluster_.run_until([&] { return !node().is_running(); }, 600_s));
  }
  std::set<size_t> draw_legs(size_t count) {
    std::set<size_t> drawn;
    while (drawn.size() < count) drawn.insert(rng_.below(legs_));
    return drawn;
  }

  bool holds_codewords(const std::vector<size_t>& disks) {
    return stack::holds_codewords(node(), disks);
  }
  bool holds_codewords() {
    std::vector<size_t> all(legs_);
    for (size_t i = 0; i < legs_; ++i) all[i] = i;
    return holds_codewords(all);
  }

  std::string failure() const {
    return load_.failure().empty() ? "" : load_.failure() + "\n" + cluster_.report();
  }
  Rng& rng() { return rng_; }
  uint64_t done() const { return load_.done(); }

  // Every life scrubs once while its load runs.
  bool scrubs = false;
  std::vector<std::string> scrubbed;

 private:
  static LoadOptions with_stack(LoadOptions load, const Shape& shape) {
    load.stack = stack_of(shape);
    load.requests = UINT64_MAX;
    return load;
  }
  task::Task<void> scrub(drive::Drive& drive) {
    const auto told = co_await drive.tell({"scrub"});
    scrubbed.push_back(told ? *told : told.error());
  }

  size_t legs_;
  task::Gate tasks_;
  StackLoad load_;
  drive::Drive* drive_ = nullptr;
  Rng rng_;
  sim::Cluster cluster_;
};

constexpr Shape kShapes[] = {
    {.legs = 3, .parity = 1, .leg_size = "1M", .options = "chunk=16K, retry_ms=5, degraded=yes"},
    {.legs = 5, .parity = 2, .leg_size = "1M", .options = "chunk=8K, retry_ms=5, degraded=yes"},
    {.legs = 4, .parity = 3, .leg_size = "768K", .options = "chunk=64K, retry_ms=5, degraded=yes"},
    {.legs = 7, .parity = 4, .leg_size = "768K", .options = "chunk=4K, retry_ms=5, degraded=yes"},
};

// The write hole: power fails at any moment under load, as many legs as parity has are gone when it
// is back, and every block holds what it must. Once more while they are gone, with other crashes.
TEST(ParityLoad, PowerLossTogetherWithTheLossOfLegsHarmsNoBlock) {
  for (const uint64_t seed : sim::seeds_to_run(300)) {
    const Shape& shape = kShapes[seed % std::size(kShapes)];
    ParityHost host(seed, shape, {.cancel_share = seed % 3 == 0 ? 0.05 : 0});
    ASSERT_TRUE(host.serves(host.rng().below(150))) << seed << host.failure();
    host.run_for(Duration{static_cast<int64_t>(host.rng().below(1'000'000))});
    const std::set<size_t> lost = host.draw_legs(host.rng().between(1, shape.parity));
    host.crash(lost);
    ASSERT_TRUE(host.serves(host.rng().below(100))) << seed << host.failure();
    host.crash(lost);
    ASSERT_TRUE(host.opens()) << seed << host.failure();
    ASSERT_TRUE(host.serves(10)) << seed << host.failure();
    EXPECT_EQ(host.failure(), "") << seed;
  }
}

TEST(ParityLoad, PowerLossesWhileItIsMadeLeaveBlankLegsOrAWholeDrive) {
  for (const uint64_t seed : sim::seeds_to_run(60)) {
    ParityHost host(seed, kShapes[seed % std::size(kShapes)]);
    for (int life = 0; life < 4; ++life) {
      host.run_for(Duration{static_cast<int64_t>(host.rng().below(2'000'000))});
      host.crash();
    }
    ASSERT_TRUE(host.serves(20)) << seed << host.failure();
    EXPECT_EQ(host.status().good, kShapes[seed % std::size(kShapes)].legs);
  }
}

TEST(ParityLoad, LegsThatFailAndReturnGetAllTheyMissed) {
  for (const uint64_t seed : sim::seeds_to_run(8)) {
    const Shape& shape = kShapes[seed % std::size(kShapes)];
    ParityHost host(seed, shape);
    ASSERT_TRUE(host.heals());
    for (int round = 0; round < 5; ++round) {
      const std::set<size_t> lost = host.draw_legs(host.rng().between(1, shape.parity));
      host.run_a_while();
      for (const size_t leg : lost) {
        host.disk(leg).fail_writes();
        if (host.rng().bernoulli(0.5)) host.disk(leg).fail_reads();
      }
      ASSERT_TRUE(host.loses(lost.size())) << seed << host.failure();
      host.run_a_while();
      for (const size_t leg : lost) host.disk(leg).heal();
      ASSERT_TRUE(host.heals()) << seed << host.failure();
    }
    const uint64_t done = host.done();
    host.stop();
    EXPECT_GT(done, 500U);
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.holds_codewords()) << seed;
  }
}

TEST(ParityLoad, PowerLossesWhileLegsAreLostOrCopiedToLoseNothing) {
  for (const uint64_t seed : sim::seeds_to_run(20)) {
    Shape shape = kShapes[seed % std::size(kShapes)];
    const std::string options = std::string(shape.options) + ", rate=8M";
    shape.options = options;
    ParityHost host(seed, shape, {.cancel_share = seed % 2 == 0 ? 0.03 : 0});
    std::set<size_t> lost;
    for (int round = 0; round < 8 && host.failure().empty(); ++round) {
      host.run_a_while();
      if (host.is_open() && host.status().good == shape.legs) lost.clear();
      if (lost.empty() && host.is_open() && host.rng().bernoulli(0.6)) {
        lost = host.draw_legs(host.rng().between(1, shape.parity));
        for (const size_t leg : lost) host.disk(leg).fail_writes();
        host.run_a_while();
        if (host.rng().bernoulli(0.5)) {
          for (const size_t leg : lost) host.disk(leg).heal();
          host.run_a_while();
        }
      }
      if (host.rng().bernoulli(0.7)) {
        host.crash(host.rng().bernoulli(0.5) ? lost : std::set<size_t>());
      } else {
        for (const size_t leg : lost) host.disk(leg).heal();
      }
    }
    host.crash();
    ASSERT_TRUE(host.heals()) << seed << host.failure();
    host.stop();
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.holds_codewords()) << seed;
  }
}

TEST(ParityLoad, ScrubUnderLoadAndAfterCrashesFindsNothing) {
  for (const uint64_t seed : sim::seeds_to_run(8)) {
    ParityHost host(seed, kShapes[seed % std::size(kShapes)]);
    host.scrubs = true;
    for (int life = 0; life < 3; ++life) {
      const size_t before = host.scrubbed.size();
      while (host.scrubbed.size() == before) host.run_a_while();
      EXPECT_NE(host.scrubbed.back().find(" 0 did not match"), std::string::npos)
          << host.scrubbed.back();
      host.crash();
    }
    host.stop();
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.holds_codewords()) << seed;
  }
}

TEST(ParityLoad, ASpareTakesThePlaceOfALegThatStaysAway) {
  for (const uint64_t seed : sim::seeds_to_run(6)) {
    ParityHost host(seed, {.legs = 3,
                           .parity = 1,
                           .leg_size = "2M",
                           .options = "file:d3,size=2M, spares=1, retry_ms=20"});
    ASSERT_TRUE(host.heals());
    EXPECT_EQ(host.status().spares, 1U);
    host.run_a_while();
    host.take_away(1);
    ASSERT_TRUE(host.loses(1)) << host.failure();
    host.run_a_while();
    if (host.rng().bernoulli(0.5)) host.crash();  // maybe while the spare is being copied to
    ASSERT_TRUE(host.heals()) << host.failure();
    host.stop();
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.holds_codewords({0, 2, 3}) || host.holds_codewords({0, 1, 2})) << seed;
  }
}

TEST(ParityLoad, BlocksThatCannotBeReadAreWrittenBack) {
  ParityHost host(3, {.legs = 4, .parity = 2, .options = "retry_ms=20"});
  ASSERT_TRUE(host.heals());
  for (int i = 0; i < 60; ++i) {
    const uint64_t block = host.rng().between(96, 2_MiB / kBlock - 1);
    host.disk(host.rng().below(4)).latent_error(block * kBlock);
    host.run_a_while();
  }
  EXPECT_GT(host.status().mended, 0U);
  host.stop();
  EXPECT_EQ(host.failure(), "");
  EXPECT_TRUE(host.holds_codewords());
}

// More legs fail than parity replaces: requests say so, and all goes on when they are back.
TEST(ParityLoad, ErrorsGoUpWhenTooManyLegsFailAndEndWithThem) {
  for (const uint64_t seed : sim::seeds_to_run(10)) {
    ParityHost host(seed, {.legs = 3, .parity = 1, .options = "retry_ms=5"},
                    {.errors_are_wrong = false});
    ASSERT_TRUE(host.heals());
    host.run_a_while();
    for (const size_t leg : host.draw_legs(2)) host.disk(leg).fail_writes();
    ASSERT_TRUE(host.loses(1));
    const uint64_t done = host.done();
    host.run_for(20_ms);
    EXPECT_GT(host.done(), done) << "requests fail, and do not wait for ever";
    if (seed % 2 == 0) host.crash();
    for (size_t leg = 0; leg < 3; ++leg) host.disk(leg).heal();
    ASSERT_TRUE(host.heals()) << seed << host.failure();
    host.stop();
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.holds_codewords()) << seed;
  }
}

// What is in place may be forgotten by a leg whose flush failed, though later flushes succeed.
TEST(ParityLoad, FlushesThatFailOnALegThatCannotBeDroppedLoseNothing) {
  for (const uint64_t seed : sim::seeds_to_run(12)) {
    ParityHost host(seed, {.legs = 3, .parity = 1, .leg_size = "1M", .options = "retry_ms=5"},
                    {.cancel_share = 0, .errors_are_wrong = false});
    ASSERT_TRUE(host.heals());
    host.take_away(0);
    ASSERT_TRUE(host.loses(1));
    for (int round = 0; round < 3; ++round) {
      host.run_a_while();
      host.disk(1).fail_flushes();
      host.run_for(20_ms);
      host.disk(1).heal();
      const uint64_t epoch = host.status().epoch;
      while (host.status().epoch < epoch + 2 && host.failure().empty()) host.run_for(1_ms);
      host.crash({0});
      ASSERT_TRUE(host.serves(20)) << seed << host.failure();
    }
    host.crash();
    host.stop();
    EXPECT_EQ(host.failure(), "") << seed;
    EXPECT_TRUE(host.holds_codewords()) << seed;
  }
}

constexpr const char* kThree = "parity(file:d0,size=4M, file:d1,size=4M, file:d2,size=4M)";

// Writes some blocks; then, when a leg has failed, others far away; and closes.
struct Steps {
  bool has_begun = false;
  bool may_go_on = false;
  bool is_closed = false;
};
task::Task<void> write_and_close(env::Env& env, Steps& steps) {
  drive::SourceLeaves leaves;
  drive::Opened drive = co_await drive::open_stack(env, kThree, leaves);
  EXPECT_TRUE(drive);
  const std::vector<std::byte> data(8 * kBlock, std::byte{7});
  for (const uint64_t first : {0, 300, 600}) {
    Result<void> done = co_await (*drive)->write(Lba(first), data);
    EXPECT_TRUE(done);
  }
  steps.has_begun = true;
  while (!steps.may_go_on) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  Result<void> done = co_await (*drive)->write(Lba(1500), data);
  EXPECT_TRUE(done);
  co_await (*drive)->close();
  steps.is_closed = true;
  done = co_await task::sleep_for(env, 1000_s, env.stop_token());
}

task::Task<void> open_until_good(env::Env& env) {
  drive::SourceLeaves leaves;
  drive::Opened drive = co_await drive::open_stack(env, kThree, leaves);
  EXPECT_TRUE(drive) << drive.error().text;
  EXPECT_LE(drive::parity_status(**drive)->regions_to_copy, 6U) << "not everything";
  while (drive::parity_status(**drive)->good < 3) {
    const Result<void> slept = co_await task::sleep_for(env, 1_ms);
    EXPECT_TRUE(slept);
  }
  co_await (*drive)->close();
}

// A leg loses power after it was dropped: what it had taken before, and not flushed, is gone too.
TEST(ParityLegs, WhatALostLegHadOnlyInItsCacheIsCopiedToItAgain) {
  for (const uint64_t seed : sim::seeds_to_run(20)) {
    Steps steps;
    sim::Cluster cluster({.seed = seed});
    sim::Node& node = cluster.node("host");
    node.start([&steps](env::Env& env) { return write_and_close(env, steps); });
    ASSERT_TRUE(cluster.run_until([&] { return steps.has_begun; }, 10_s));
    disk_of(node, 1).fail_writes();
    steps.may_go_on = true;
    ASSERT_TRUE(cluster.run_until([&] { return steps.is_closed; }, 10_s));
    node.crash();
    disk_of(node, 1).heal();
    node.start([](env::Env& env) { return open_until_good(env); });
    ASSERT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 10_s));
    EXPECT_TRUE(holds_codewords(node, {0, 1, 2})) << seed;
  }
}

}  // namespace
}  // namespace cairn::stack
