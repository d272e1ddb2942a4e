// SPDX-License-Identifier: Apache-2.0
// Keys that are changed under load, through power losses and on a disk that refuses writes.
#include "service/integrity/encrypt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "task/deadline.h"
#include "task/when_all.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::stack {
namespace {

std::map<std::string, std::string> many_keys() {
  std::map<std::string, std::string> files;
  for (uint8_t i = 0; i < 100; ++i) files[fmt::format("k{}", i)] = drive::testing_key(i);
  return files;
}

uint64_t fact(const drive::Drive& drive, std::string_view name) {
  const std::vector<drive::Fact> facts = drive.facts();
  return std::ranges::find(facts, name, &drive::Fact::name)->value;
}

// A host under load whose drive gets one new key after the other.
class RotatingHost {
 public:
  RotatingHost(uint64_t seed, bool errors_are_wrong = true, std::string below = "file:d0,size=2M")
      : load_({.stack = "",
               .requests = UINT64_MAX,
               .files = many_keys(),
               .errors_are_wrong = errors_are_wrong}),
        below_(std::move(below)),
        rng_(seed),
        cluster_({.seed = seed}) {
    load_.on_open = [this](drive::Drive* drive) { drive_ = drive; };
    node().start([this](env::Env& env) { return live(env); });
  }

  sim::Node& node() { return cluster_.node("host"); }
  sim::Medium& disk() { return node().disk("d0"); }
  bool is_rotating() const { return drive_ != nullptr && is_told_ && key_ != target_; }
  bool is_open() const { return drive_ != nullptr; }
  bool is_refused() const { return drive_ != nullptr && !drive_->concerns().empty(); }
  uint64_t done() const { return load_.done(); }
  int key() const { return key_; }
  Rng& rng() { return rng_; }
  template <class F>
  [[nodiscard]] bool run_until(F condition) {
    return cluster_.run_until(condition, 1000_s);
  }
  void run_a_while() {
    cluster_.run_for(Duration{static_cast<int64_t>(rng_.between(1, 30'000)) * 1'000});
  }
  void crash() {
    node().crash();
    drive_ = nullptr;
    load_.crashed();
    node().restart();
  }
  void stop() {
    load_.stop_cancelling();
    goes_on_ = false;
    EXPECT_TRUE(run_until([this] { return is_open() && key_ == target_; })) << report();
    node().stop();
    EXPECT_TRUE(run_until([this] { return !node().is_running(); })) << report();
    EXPECT_EQ(load_.failure(), "") << report();
  }
  std::string report() const { return load_.failure() + "\n" + cluster_.report(); }

 private:
  task::Task<void> live(env::Env& env) {
    const std::string old_key = key_ != target_ ? fmt::format(", old_key=k{}", key_) : "";
    load_.change_stack(fmt::format("encrypt({}, key=k{}{}, rate=20M)", below_, target_, old_key));
    std::vector<task::Task<void>> parts;
    parts.push_back(load_.live(env));
    parts.push_back(rotate(env));
    co_await task::when_all(std::move(parts));
  }
  // Power fails only while no key is being told: then nobody knows which keys are needed.
  task::Task<void> rotate(env::Env& env) {
    while (!env.stop_token().requested()) {
      const Result<void> slept = co_await task::sleep_for(env, 100_us, env.stop_token());
      if (!slept || drive_ == nullptr) continue;
      if (key_ != target_) {
        if (fact(*drive_, "rotating") == 0) key_ = target_;
      } else if (goes_on_) {
        is_told_ = false;
        const auto told = co_await drive_->tell({"rotate", fmt::format("k{}", ++target_)});
        EXPECT_TRUE(told) << told.error();
        is_told_ = true;
      }
    }
  }

  StackLoad load_;
  const std::string below_;
  drive::Drive* drive_ = nullptr;
  int key_ = 0;     // that all has, as far as is known
  int target_ = 0;  // that all gets
  bool is_told_ = false;
  bool goes_on_ = true;
  Rng rng_;
  sim::Cluster cluster_;
};

TEST(EncryptLoad, RotationsSurvivePowerLosses) {
  for (const uint64_t seed : sim::seeds_to_run(5)) {
    RotatingHost host(seed);
    for (int life = 0; life < 8; ++life) {
      host.run_a_while();
      ASSERT_TRUE(host.run_until([&] { return host.is_rotating(); })) << host.report();
      host.crash();
    }
    host.stop();
    EXPECT_GT(host.done(), 500U);
  }
}

// Windows that are holes, or partly so, change their key without taking space.
TEST(EncryptLoad, RotationsOverThinDrivesSurvivePowerLosses) {
  for (const uint64_t seed : sim::seeds_to_run(5)) {
    RotatingHost host(seed, true, "thin(file:d0,size=3M, chunk=16K)");
    for (int life = 0; life < 8; ++life) {
      host.run_a_while();
      ASSERT_TRUE(host.run_until([&] { return host.is_rotating(); })) << host.report();
      host.crash();
    }
    host.stop();
    EXPECT_GT(host.done(), 500U);
  }
}

TEST(EncryptLoad, ManyKeysFollowEachOtherUnderLoad) {
  RotatingHost host(7);
  ASSERT_TRUE(host.run_until([&] { return host.key() == 5; })) << host.report();
  host.stop();
}

TEST(EncryptLoad, AWindowThatIsRefusedIsTriedAgain) {
  for (const uint64_t seed : sim::seeds_to_run(2)) {
    RotatingHost host(seed, false);
    ASSERT_TRUE(host.run_until([&] { return host.is_rotating(); })) << host.report();
    const uint64_t offset = 128_KiB + host.rng().below(30) * 64_KiB;
    // In place, or where the labels are.
    host.disk().fail_writes({.offset = host.rng().bernoulli(0.5) ? offset : 0, .length = 4096});
    const auto is_refused = [&] { return host.is_refused(); };
    ASSERT_TRUE(host.run_until(is_refused)) << host.report();
    host.run_a_while();
    host.disk().heal();
    if (host.rng().bernoulli(0.5)) host.crash();
    const int key = host.key();
    ASSERT_TRUE(host.run_until([&] { return host.key() > key; })) << host.report();
    host.stop();
  }
}

}  // namespace
}  // namespace cairn::stack
