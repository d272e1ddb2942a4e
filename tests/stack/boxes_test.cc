// SPDX-License-Identifier: Apache-2.0
// Every service, and every service over every service, on drives of boxes across the network, while
// boxes lose power and come back, their disks fail and fill up, and the network is cut: whatever a
// flush has covered stays, and no block ever holds what nobody wrote there.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "drive/files_testing.h"
#include "drive/services.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/target/target.h"
#include "nvme/registry.h"
#include "sim/cluster.h"
#include "sim/scenario.h"
#include "stack/stack_load.h"
#include "task/sync.h"

namespace cairn::stack {
namespace {

constexpr size_t kBoxes = 3;
constexpr uint16_t kPort = 4420;

std::string nqn_of(size_t leaf) { return fmt::format("nqn.2026-11.io.cairn:d{}", leaf); }
std::string disk_of(size_t leaf) { return fmt::format("d{}", leaf); }

// Drives of the boxes, and files that are in memory.
class BoxLeaves final : public drive::Leaves {
 public:
  std::expected<drive::FileContent, std::string> read_file(const std::string&) override {
    return drive::FileContent(as_bytes(drive::testing_key(1)));
  }
  task::Task<Leaf> open(env::Env& env, std::string text) override {
    const std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(text);
    if (!uri) co_return std::unexpected(uri.error());
    Result<std::unique_ptr<fabric::RemoteDrive>> opened =
        co_await fabric::RemoteDrive::open(env, *uri);
    if (!opened) co_return std::unexpected(opened.error().text());
    co_return std::move(*opened);
  }
};

struct Pair {
  const drive::Service* above;
  const drive::Service* below;  // null: drives of boxes alone
};

void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.above->name << " over " << (pair.below == nullptr ? "boxes" : pair.below->name);
}

// Boxes with drives, a stack over those under load, and what happens to the boxes.
class Scene {
 public:
  Scene(const Pair& pair, uint64_t seed)
      : rng_(seed), cluster_({.seed = seed}), load_({.stack = stack_of(pair)}) {
    options_.stack = stack_of(pair);
    options_.requests = 800;
    options_.errors_are_wrong = false;
    options_.may_forget = true;
    options_.leaves = &leaves_;
    load_ = StackLoad(options_);
    for (size_t box = 0; box < kBoxes; ++box) {
      sim::Node& node = box_node(box);
      node.start([this, box](env::Env& env) { return serve(env, box); });
    }
    cluster_.run_for(10_ms);
  }

  // A life of the stack with so many faults, then one without, which must find all that is safe.
  void run(size_t faults) {
    sim::Node& host = cluster_.node("host");
    bool is_open = false;
    load_.on_open = [&](drive::Drive* drive) { is_open = drive != nullptr; };
    host.start([this](env::Env& env) { return load_.live(env); });
    ASSERT_TRUE(cluster_.run_until([&] { return is_open || !host.is_running(); }, 1000_s))
        << cluster_.report();
    for (size_t i = 0; i < faults && is_open && load_.failure().empty(); ++i) {
      await_requests(host, rng_.below(100));
      strike();
      await_requests(host, rng_.below(30));
      calm();
    }
    calm();
    ASSERT_TRUE(cluster_.run_until([&] { return !host.is_running(); }, 10'000_s))
        << cluster_.report();
    ASSERT_EQ(load_.failure(), "") << cluster_.report();
    // What was in flight to a box when it lost power, or not flushed by then, is known only when it
    // is read.
    load_.crashed();
    host.restart();
    ASSERT_TRUE(cluster_.run_until([&] { return !host.is_running(); }, 10'000_s))
        << cluster_.report();
    EXPECT_EQ(load_.failure(), "") << cluster_.report();
  }

 private:
  std::string stack_of(const Pair& pair) {
    leaf_count_ = 0;
    const auto leaf = [this] {
      const size_t number = leaf_count_++;
      return fmt::format(
          "nvme-tcp://{}/{}?loss_timeout=2s&reconnect_delay_max=200ms&kato=1s&quiesce=100ms",
          box_node(number % kBoxes).address(kPort).text(), nqn_of(number));
    };
    if (pair.below == nullptr) return drive::example_over(*pair.above, leaf);
    return drive::example_over(*pair.above, [&] { return drive::example_over(*pair.below, leaf); });
  }

  // So many more have ended, or time is up because the faults let none through.
  void await_requests(const sim::Node& host, uint64_t count) {
    const uint64_t target = load_.done() + count;
    const auto is_time = [&] { return load_.done() >= target || !host.is_running(); };
    const bool came = cluster_.run_until(is_time, 5_s);
    (void)came;
  }

  sim::Node& box_node(size_t box) { return cluster_.node(fmt::format("box{}", box)); }

  task::Task<void> serve(env::Env& env, size_t box) {
    nvme::Registry registry(env);
    fabric::Target target(env, registry);
    for (size_t leaf = box; leaf < leaf_count_; leaf += kBoxes) {
      nvme::SubsystemOptions subsystem;
      subsystem.nqn = nqn_of(leaf);
      EXPECT_TRUE(registry.add_subsystem(subsystem).has_value());
      nvme::NamespaceOptions space;
      space.drive = drive::Spec::parse(fmt::format("file:{},size=4M", disk_of(leaf))).value();
      const Result<uint32_t> added = co_await registry.add_namespace(nqn_of(leaf), space);
      EXPECT_TRUE(added.has_value() || env.stop_token().requested());
    }
    const Result<env::Address> listens = target.listen(box_node(box).address(kPort));
    EXPECT_TRUE(listens.has_value() || env.stop_token().requested());
    task::Event never;
    const Result<void> stopped = co_await never.wait(env.stop_token());
    EXPECT_FALSE(stopped.has_value());
    co_await target.close();
    co_await registry.close();
  }

  void strike() {
    const size_t box = rng_.below(kBoxes);
    sim::Node& node = box_node(box);
    switch (rng_.below(6)) {
      case 0:
      case 1:
        node.crash();
        load_.lost_below();
        cluster_.run_for(Duration{static_cast<int64_t>(rng_.below(100'000'000))});
        node.restart();
        break;
      case 2:
        node.kill();
        cluster_.run_for(Duration{static_cast<int64_t>(rng_.below(10'000'000))});
        node.restart();
        break;
      case 3:
        cluster_.partition("host", node.name());
        break;
      case 4:
        for (size_t leaf = box; leaf < leaf_count_; leaf += kBoxes) node.disk(disk_of(leaf)).full();
        break;
      default:
        for (size_t leaf = box; leaf < leaf_count_; leaf += kBoxes) {
          rng_.chance(0.5) ? node.disk(disk_of(leaf)).fail_writes()
                           : node.disk(disk_of(leaf)).fail_flushes();
        }
        load_.lost_below();
    }
  }

  void calm() {
    cluster_.heal();
    for (size_t leaf = 0; leaf < leaf_count_; ++leaf) {
      box_node(leaf % kBoxes).disk(disk_of(leaf)).heal();
    }
  }

  Rng rng_;
  sim::Cluster cluster_;
  size_t leaf_count_ = 0;
  BoxLeaves leaves_;
  LoadOptions options_;
  StackLoad load_;
};

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (const drive::Service* above : drive::services()) {
    if (!above->leaf_only.empty()) continue;
    pairs.push_back({above, nullptr});
    for (const drive::Service* below : drive::services()) {
      if (below->leaf_only.empty()) pairs.push_back({above, below});
    }
  }
  return pairs;
}

class EveryPairOnBoxes : public testing::TestWithParam<Pair> {};

TEST_P(EveryPairOnBoxes, KeepsWhatWasFlushed) {
  for (const uint64_t seed : sim::seeds_to_run(1)) {
    Scene scene(GetParam(), seed);
    scene.run(8);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Services, EveryPairOnBoxes, testing::ValuesIn(all_pairs()),
                         [](const testing::TestParamInfo<Pair>& info) {
                           return fmt::format(
                               "{}_over_{}", info.param.above->name,
                               info.param.below == nullptr ? "boxes" : info.param.below->name);
                         });

}  // namespace
}  // namespace cairn::stack
