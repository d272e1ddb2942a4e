// SPDX-License-Identifier: Apache-2.0
// Mirrors whose legs fail, vanish and come back, under load and through power losses.
#include "service/raid/mirror.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

constexpr uint64_t kDataOffset = 64_KiB;

// A host with a mirror of simulated disks under load.
class MirrorHost {
 public:
  MirrorHost(uint64_t seed, std::string stack, double cancel_share = 0.03)
      : load_({.stack = std::move(stack), .requests = UINT64_MAX, .cancel_share = cancel_share}),
        rng_(seed),
        cluster_({.seed = seed}) {
    load_.on_open = [this](drive::Drive* drive) { drive_ = drive; };
    node().start([this](env::Env& env) { return load_.live(env); });
  }

  sim::Node& node() { return cluster_.node("host"); }
  sim::Medium& disk(int leg) { return node().disk(fmt::format("d{}", leg)); }
  bool is_open() const { return drive_ != nullptr; }
  drive::MirrorStatus status() const { return *drive::mirror_status(*drive_); }

  void run_a_while() {
    cluster_.run_for(Duration{static_cast<int64_t>(rng_.between(1, 40)) * 1'000'000});
  }
  // Until the mirror has so many good legs and nothing to copy.
  [[nodiscard]] bool heals(size_t legs) {
    return cluster_.run_until(
        [&] {
          return is_open() && status().good == legs && status().regions_to_copy == 0 &&
                 status().copying == 0;
        },
        600_s);
  }
  [[nodiscard]] bool loses_a_leg() {
    return cluster_.run_until([&] { return is_open() && status().lost > 0; }, 600_s);
  }
  void crash() {
    node().crash();
    drive_ = nullptr;
    load_.crashed();
    cluster_.recover();  // starts it again
  }
  // In good order, with legs that are equal.
  void stop(size_t legs) {
    load_.stop_cancelling();
    cluster_.run_for(10_ms);  // deadlines that were set before pass
    EXPECT_TRUE(heals(legs)) << failure();
    node().stop();
    EXPECT_TRUE(cluster_.run_until([&] { return !node().is_running(); }, 600_s));
  }
  // The data of two legs, to the end of the smaller.
  bool are_equal(int a, int b) {
    const uint64_t size = std::min(disk(a).size(), disk(b).size()) - kDataOffset;
    std::vector<std::byte> one(size);
    std::vector<std::byte> other(size);
    disk(a).peek(kDataOffset, one);
    disk(b).peek(kDataOffset, other);
    return one == other;
  }
  std::string failure() const {
    return load_.failure().empty() ? "" : load_.failure() + "\n" + cluster_.report();
  }
  Rng& rng() { return rng_; }
  uint64_t done() const { return load_.done(); }

 private:
  StackLoad load_;
  drive::Drive* drive_ = nullptr;
  Rng rng_;
  sim::Cluster cluster_;
};

std::string two_legs(std::string_view options) {
  return fmt::format("mirror(file:d0,size=2M, file:d1,size=2M, {})", options);
}

TEST(MirrorLoad, ALegThatFailsAndReturnsIsByteEqualAfterwards) {
  for (const uint64_t seed : sim::seeds_to_run(10)) {
    MirrorHost host(seed, two_legs("retry_ms=20"));
    ASSERT_TRUE(host.heals(2));
    for (int round = 0; round < 6; ++round) {
      const int leg = static_cast<int>(host.rng().below(2));
      host.run_a_while();
      host.disk(leg).fail_writes();
      if (host.rng().bernoulli(0.5)) host.disk(leg).fail_reads();
      ASSERT_TRUE(host.loses_a_leg()) << host.failure();
      host.run_a_while();
      host.disk(leg).heal();
      ASSERT_TRUE(host.heals(2)) << host.failure();
    }
    const uint64_t done = host.done();
    host.stop(2);
    EXPECT_GT(done, 1000U);
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.are_equal(0, 1)) << seed;
  }
}

// A leg fails, or does not, and power too, again and again; in the end both legs are good.
void lose_legs_and_power(MirrorHost& host, uint64_t seed) {
  for (int round = 0; round < 8 && host.failure().empty(); ++round) {
    host.run_a_while();
    const int leg = static_cast<int>(host.rng().below(2));
    if (host.is_open() && host.status().good == 2 && host.rng().bernoulli(0.6)) {
      host.disk(leg).fail_writes();
      host.run_a_while();
      if (host.rng().bernoulli(0.5)) {
        host.disk(leg).heal();
        host.run_a_while();
      }
    }
    if (host.rng().bernoulli(0.7)) host.crash();
    host.disk(leg).heal();
  }
  ASSERT_TRUE(host.heals(2)) << seed << host.failure();
  host.stop(2);
  EXPECT_EQ(host.failure(), "");
}

TEST(MirrorLoad, PowerLossesWhileALegIsLostOrCopiedToLoseNothing) {
  for (const uint64_t seed : sim::seeds_to_run(20)) {
    MirrorHost host(seed, two_legs("retry_ms=5, rate=8M"), 0);
    lose_legs_and_power(host, seed);
    EXPECT_TRUE(host.are_equal(0, 1)) << seed;
  }
}

// Holes are copied as holes.
TEST(MirrorLoad, PowerLossesWhileAThinLegIsLostOrCopiedToLoseNothing) {
  for (const uint64_t seed : sim::seeds_to_run(10)) {
    MirrorHost host(seed,
                    "mirror(thin(file:d0,size=3M, chunk=16K), thin(file:d1,size=3M, chunk=16K), "
                    "retry_ms=5, rate=8M)",
                    0);
    lose_legs_and_power(host, seed);
  }
}

TEST(MirrorLoad, APowerLossThatTakesALegTakesNothingThatWasSeen) {
  for (const uint64_t seed : sim::seeds_to_run(8)) {
    MirrorHost host(seed, two_legs("degraded=yes, retry_ms=5"), 0);
    for (int round = 0; round < 4 && host.failure().empty(); ++round) {
      ASSERT_TRUE(host.heals(2)) << seed << host.failure();
      host.run_a_while();
      host.crash();
      host.run_a_while();  // legs that differ are read, and made equal
      const int leg = static_cast<int>(host.rng().below(2));
      host.crash();
      host.disk(leg).fail_reads();
      host.disk(leg).fail_writes();
      host.run_a_while();
      host.crash();
      host.disk(leg).heal();
    }
    ASSERT_TRUE(host.heals(2)) << seed << host.failure();
    host.stop(2);
    EXPECT_EQ(host.failure(), "");
  }
}

TEST(MirrorLoad, ASpareTakesThePlaceOfALegThatStaysAway) {
  for (const uint64_t seed : sim::seeds_to_run(5)) {
    MirrorHost host(seed,
                    "mirror(file:d0,size=2M, file:d1,size=2M, file:d2,size=2M, spares=1, "
                    "retry_ms=20)");
    ASSERT_TRUE(host.heals(2));
    EXPECT_EQ(host.status().spares, 1U);
    host.disk(0).fail_writes();
    host.disk(0).fail_reads();
    ASSERT_TRUE(host.loses_a_leg());
    host.run_a_while();
    if (host.rng().bernoulli(0.5)) {
      host.disk(0).heal();
      host.crash();  // maybe while the spare is being copied to
    }
    ASSERT_TRUE(host.heals(2)) << host.failure();
    host.disk(0).heal();
    host.stop(2);
    EXPECT_EQ(host.failure(), "");
    EXPECT_TRUE(host.are_equal(1, 2) || host.are_equal(0, 1)) << seed;
  }
}

TEST(MirrorLoad, ThreeLegsServeWithOne) {
  MirrorHost host(1, "mirror(file:d0,size=2M, file:d1,size=2M, file:d2,size=2M, retry_ms=20)");
  ASSERT_TRUE(host.heals(3));
  host.disk(0).fail_writes();
  ASSERT_TRUE(host.loses_a_leg());
  host.disk(2).fail_writes();
  host.run_a_while();
  const uint64_t done = host.done();
  host.run_a_while();
  host.run_a_while();
  EXPECT_GT(host.done(), done);
  EXPECT_EQ(host.status().good, 1U);
  host.disk(0).heal();
  host.disk(2).heal();
  ASSERT_TRUE(host.heals(3));
  host.stop(3);
  EXPECT_EQ(host.failure(), "");
  EXPECT_TRUE(host.are_equal(0, 1) && host.are_equal(1, 2));
}

TEST(MirrorLoad, BlocksThatCannotBeReadAreWrittenBack) {
  MirrorHost host(3, two_legs("retry_ms=20"));
  ASSERT_TRUE(host.heals(2));
  for (int i = 0; i < 40; ++i) {
    const uint64_t block = host.rng().below((2_MiB - kDataOffset) / 4096);
    host.disk(i % 2).latent_error(kDataOffset + block * 4096);
    host.run_a_while();
  }
  ASSERT_TRUE(host.heals(2));
  host.stop(2);
  EXPECT_EQ(host.failure(), "");
  EXPECT_TRUE(host.are_equal(0, 1));
}

}  // namespace
}  // namespace cairn::stack
