// SPDX-License-Identifier: Apache-2.0
// Hosts and boxes in the simulator, for tests of lanes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "fabric/host/host_pool.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/fabric/sim_box.h"
#include "testing/sim_test.h"
#include "world/sim/cluster.h"

namespace cairn::lane_tests {

using drive::Request;
using fabric::HostPool;
using fabric::RemoteDrive;
using fabric::Uri;
using task::Task;

inline constexpr uint32_t kBlock = 512;

inline std::vector<std::byte> random_bytes(size_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Rng(seed).fill(bytes);
  return bytes;
}

// What a SIM_TEST_F of a fixture has by name.
template <class Test>
struct LaneScene {
  env::Env& env;
  Test& test;
};

class LaneTest : public testing::Test {
 public:
  // What runs on the host: a function, not a lambda with captures.
  template <class Test>
  using Body = Task<void> (*)(env::Env&, Test&);

  sim::ClusterOptions world;
  fabric::HostOptions options = named_host();
  SimBoxOptions box_options;
  uint32_t box_count = 1;
  uint32_t box_cores = 1;
  uint32_t host_cores = 1;

  SimBox& box(size_t index = 0) { return *boxes_[index]; }
  sim::Cluster& cluster() { return *cluster_; }
  std::string box_name(size_t index) const { return "box" + std::to_string(index); }
  Uri uri(size_t index = 0, uint32_t nsid = 1) {
    return {.paths = {cluster_->node(box_name(index)).address(kPort)},
            .nqn = kNqn,
            .nsid = nsid,
            .options = options};
  }

 protected:
  // Runs `body` on the host to its end; then everything has to end.
  template <class Test>
  void on_host(Test& test, Body<Test> body, Duration limit = 1000_s) {
    boxes_.clear();
    cluster_ = std::make_unique<sim::Cluster>(world);
    for (uint32_t i = 0; i < box_count; ++i) {
      boxes_.push_back(std::make_unique<SimBox>(box_options));
      sim::Node& node = cluster_->node(box_name(i), {.cores = box_cores});
      node.start(boxes_.back()->program(node.address(kPort)));
    }
    bool finished = false;
    cluster_->run_until([&] { return is_serving(); }, 1_s);
    cluster_->node("host", {.cores = host_cores}).start([&test, body, &finished](env::Env& env) {
      return until_done(env, test, body, finished);
    });
    cluster_->run_until([&] { return finished; }, limit);
    EXPECT_TRUE(finished) << "the host does not come to its end\n" << cluster_->report();
    for (sim::Node* node : cluster_->nodes()) node->stop();
    EXPECT_TRUE(cluster_->run_until_idle(100_s));
    for (sim::Node* node : cluster_->nodes()) EXPECT_FALSE(node->is_running()) << node->name();
    cluster_.reset();
  }

 private:
  static fabric::HostOptions named_host() {
    fabric::HostOptions options;
    options.host_nqn = "nqn.2026-11.io.cairn:host";
    options.host_id = {9, 9, 9};
    return options;
  }
  bool is_serving() const {
    for (const auto& each : boxes_) {
      if (!each->is_serving()) return false;
    }
    return true;
  }
  template <class Test>
  static Task<void> until_done(env::Env& env, Test& test, Body<Test> body, bool& finished) {
    co_await body(env, test);
    finished = true;
  }

  std::vector<std::unique_ptr<SimBox>> boxes_;
  std::unique_ptr<sim::Cluster> cluster_;
};

// Opens a drive; an error is the test's failure.
inline Task<std::unique_ptr<RemoteDrive>> open_drive(HostPool& pool, Uri uri) {
  Result<std::unique_ptr<RemoteDrive>> drive = co_await RemoteDrive::open(pool, std::move(uri));
  EXPECT_OK(drive);
  co_return drive ? std::move(*drive) : nullptr;
}

}  // namespace cairn::lane_tests
