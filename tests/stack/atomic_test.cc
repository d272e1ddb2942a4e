// SPDX-License-Identifier: Apache-2.0
// atomic through a thousand power losses: each write is there wholly or not at all, on one drive
// and on mirrors that lose a leg with the power.
#include "service/integrity/atomic.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "service/raid/mirror_format.h"
#include "stack/stack.h"
#include "task/when_all.h"
#include "world/sim/cluster.h"

namespace cairn::stack {
namespace {

using drive::Request;
using Kind = Request::Kind;

constexpr size_t kBlock = 4096;
constexpr size_t kUnit = 16;
constexpr size_t kWriters = 6;
constexpr size_t kAreaBlocks = 40;

// Writers with an area each, one durable change at a time; after a crash an area holds what it held
// before the change that was in flight, or after it.
class AtomicHost {
 public:
  AtomicHost(uint64_t seed, std::string stack)
      : stack_(std::move(stack)), areas_(kWriters), rng_(seed), cluster_({.seed = seed}) {
    node().start([this](env::Env& env) { return live(env); });
  }

  sim::Node& node() { return cluster_.node("host"); }
  sim::Medium& disk(int leg) { return node().disk(fmt::format("d{}", leg)); }
  Rng& rng() { return rng_; }
  void run_for(uint64_t min_us, uint64_t max_us) {
    cluster_.run_for(Duration{static_cast<int64_t>(rng_.between(min_us, max_us)) * 1000});
  }
  // Until the stack is open and has been checked.
  [[nodiscard]] bool opens() {
    return cluster_.run_until([this] { return is_open_ || !failure_.empty(); }, 100_s);
  }
  // Until the labels of both legs, of one generation, call both good. (The label of a leg that was
  // away says so too, of an older one.)
  [[nodiscard]] bool legs_are_good() {
    const auto are_good = [this] {
      const drive::MirrorLabel one = newest_label(0);
      const drive::MirrorLabel other = newest_label(1);
      return one.generation == other.generation && calls_all_good(one) && calls_all_good(other);
    };
    return cluster_.run_until(are_good, 100_s);
  }
  void crash() {
    node().crash();
    is_open_ = false;
    cluster_.recover();
  }
  const std::string& failure() const { return failure_; }
  uint64_t torn() const { return torn_; }  // areas that held a part of a write
  uint64_t undone() const { return undone_; }
  uint64_t redone() const { return redone_; }

 private:
  struct Change {
    bool is_whole = false;  // wholly or not at all; else block by block
    size_t first = 0;
    std::vector<uint64_t> values;  // empty: no change is in flight
  };
  struct Area {
    std::vector<uint64_t> values = std::vector<uint64_t>(kAreaBlocks);
    Change change;
    void apply() {
      std::ranges::copy(change.values, values.begin() + static_cast<ptrdiff_t>(change.first));
      change.values.clear();
    }
  };

  drive::MirrorLabel newest_label(int leg) {
    std::vector<std::byte> block(kBlock);
    drive::MirrorLabel newest;
    for (uint64_t slot = 0; slot < 2; ++slot) {
      disk(leg).peek(slot * kBlock, block);
      const Result<drive::MirrorLabel> label = drive::decode_label(block);
      if (label && label->generation > newest.generation) newest = *label;
    }
    return newest;
  }
  static bool calls_all_good(const drive::MirrorLabel& label) {
    return std::ranges::all_of(label.legs, [](const auto& leg) { return leg.stale_from == 0; });
  }
  static std::vector<std::byte> bytes_of(std::span<const uint64_t> values) {
    std::vector<std::byte> bytes(values.size() * kBlock);
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
      store(MutableBytes(bytes).subspan(at), values[at / kBlock]);
    }
    return bytes;
  }

  task::Task<void> live(env::Env& env) {
    drive::SourceLeaves leaves;
    drive::Opened drive = co_await drive::open_stack(env, stack_, leaves);
    if (!drive) {
      failure_ = drive.error().text;
      co_return;
    }
    for (size_t i = 0; i < kWriters; ++i) co_await check(**drive, i);
    is_open_ = true;
    std::vector<task::Task<void>> writers;
    for (size_t i = 0; i < kWriters; ++i) writers.push_back(write(env, **drive, i));
    co_await task::when_all(std::move(writers));
    co_await (*drive)->close();
  }

  task::Task<void> check(drive::Drive& drive, size_t index) {
    Area& area = areas_[index];
    std::vector<std::byte> memory(kAreaBlocks * kBlock);
    const Result<void> read = co_await drive.read(Lba(index * kAreaBlocks), memory);
    if (!read) {
      failure_ = read.error().text();
      co_return;
    }
    std::vector<uint64_t> found;
    for (size_t i = 0; i < kAreaBlocks; ++i) {
      found.push_back(load<uint64_t>(Bytes(memory).subspan(i * kBlock)));
    }
    Area after = area;
    after.apply();
    const bool has_change = !area.change.values.empty();
    if (has_change && area.change.is_whole) ++(found == after.values ? redone_ : undone_);
    for (size_t i = 0; i < kAreaBlocks; ++i) {
      if (found[i] == area.values[i] || found[i] == after.values[i]) continue;
      failure_ = fmt::format("area {} block {} holds {}, not {} or {}", index, i, found[i],
                             area.values[i], after.values[i]);
    }
    const bool must_be_whole = !has_change || area.change.is_whole;
    if (must_be_whole && found != area.values && found != after.values) ++torn_;
    area.values = found;
    area.change.values.clear();
  }

  task::Task<void> write(env::Env& env, drive::Drive& drive, size_t index) {
    Area& area = areas_[index];
    while (!env.stop_token().requested() && failure_.empty()) {
      Rng& rng = env.rng();
      const uint64_t draw = rng.below(100);
      Kind kind = draw < 70 ? Kind::kWrite : Kind::kCompareAndWrite;
      if (draw >= 85) kind = draw < 92 ? Kind::kWriteZeroes : Kind::kDiscard;
      const bool has_data = kind == Kind::kWrite || kind == Kind::kCompareAndWrite;
      const bool is_large = rng.bernoulli(0.1);
      const size_t count = is_large ? rng.between(kUnit + 1, kAreaBlocks) : rng.between(1, kUnit);
      const size_t first = rng.below(kAreaBlocks - count + 1);
      area.change = {.is_whole = has_data && !is_large, .first = first, .values = {}};
      for (size_t i = 0; i < count; ++i) area.change.values.push_back(has_data ? ++next_ : 0);
      std::vector<std::byte> old = bytes_of(std::span(area.values).subspan(first, count));
      std::vector<std::byte> fresh = bytes_of(area.change.values);
      const MutableBytes one[] = {kind == Kind::kWrite ? MutableBytes(fresh) : MutableBytes(old)};
      const MutableBytes two[] = {MutableBytes(fresh)};
      const std::span<const MutableBytes> none;
      const Request request{
          .kind = kind, .durable = true, .lba = Lba(index * kAreaBlocks + first), .blocks = count};
      Result<void> done = co_await drive.submit(request, has_data ? std::span(one) : none,
                                                kind == Kind::kCompareAndWrite ? two : none);
      if (done && kind == Kind::kDiscard) done = co_await drive.flush();
      if (env.stop_token().requested()) co_return;
      if (!done) {
        failure_ = done.error().text();
        co_return;
      }
      area.apply();
    }
  }

  const std::string stack_;
  std::vector<Area> areas_;
  uint64_t next_ = 0;
  uint64_t torn_ = 0;
  uint64_t undone_ = 0;
  uint64_t redone_ = 0;
  bool is_open_ = false;
  std::string failure_;
  Rng rng_;
  sim::Cluster cluster_;
};

TEST(AtomicLoad, WritesAreTornWithoutIt) {
  AtomicHost host(1, "slice(file:d0,size=4M)");
  for (int crash = 0; crash < 100; ++crash) {
    ASSERT_TRUE(host.opens());
    host.run_for(1, 1500);
    host.crash();
  }
  ASSERT_TRUE(host.opens());
  EXPECT_EQ(host.failure(), "");
  EXPECT_GT(host.torn(), 20U);
}

TEST(AtomicLoad, AThousandPowerLossesTearNothing) {
  // A log that is emptied often.
  AtomicHost host(1, "atomic(file:d0,size=4M, unit=64K, log=256K)");
  for (int crash = 0; crash < 1000; ++crash) {
    ASSERT_TRUE(host.opens());
    ASSERT_EQ(host.failure(), "");
    host.run_for(1, 1500);
    host.crash();
  }
  ASSERT_TRUE(host.opens());
  EXPECT_EQ(host.failure(), "");
  EXPECT_EQ(host.torn(), 0U);
  EXPECT_GT(host.undone(), 500U);
  EXPECT_GT(host.redone(), 500U);
}

TEST(AtomicLoad, AThousandPowerLossesThatTakeLegsTearNothing) {
  AtomicHost host(2,
                  "atomic(mirror(file:d0,size=4M, file:d1,size=4M, degraded=yes, retry_ms=1), "
                  "unit=64K, log=256K)");
  int lost_legs = 0;
  for (int crash = 0; crash < 1000; ++crash) {
    ASSERT_TRUE(host.opens());
    ASSERT_EQ(host.failure(), "") << crash;
    host.run_for(1, 3000);
    host.crash();
    if (!host.rng().bernoulli(0.2)) continue;
    // A leg is away from this crash to the next, and then it is made equal.
    const int leg = static_cast<int>(host.rng().below(2));
    host.disk(leg).fail_reads();
    host.disk(leg).fail_writes();
    ++lost_legs;
    ASSERT_TRUE(host.opens());
    host.run_for(1, 3000);
    host.crash();
    host.disk(leg).heal();
    ASSERT_TRUE(host.opens());
    ASSERT_TRUE(host.legs_are_good()) << crash << host.failure();
  }
  ASSERT_TRUE(host.opens());
  EXPECT_EQ(host.failure(), "");
  EXPECT_EQ(host.torn(), 0U);
  EXPECT_GT(lost_legs, 100);
  EXPECT_GT(host.undone(), 500U);
  EXPECT_GT(host.redone(), 500U);
}

}  // namespace
}  // namespace cairn::stack
