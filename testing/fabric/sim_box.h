// SPDX-License-Identifier: Apache-2.0
// A box as the program of a simulated node.
#pragma once

#include <cstdint>
#include <string>

#include "env/env.h"
#include "fabric/target/options.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/task.h"

namespace cairn::lane_tests {

inline const std::string kNqn = "nqn.2026-11.io.cairn:lanes";
inline constexpr uint16_t kPort = 4420;

struct SimBoxOptions {
  fabric::TargetOptions target;
  uint32_t namespaces = 1;
  std::string drive = "mem:size=1M,block=512";  // of each, as TestDrive names it
  uint16_t queue_entries = 128;
};

// Lives outside the simulation, so that a test can look into it between two events.
class SimBox {
 public:
  explicit SimBox(const SimBoxOptions& options = {}) : options_(options) {}

  // Serves until it is stopped.
  env::Program program(env::Address at);

  // While it runs.
  fabric::Target& target() { return *target_; }
  nvme::Registry& registry() { return *registry_; }
  bool is_serving() const { return target_ != nullptr; }

  // After it was stopped: what all its I/O queues have done.
  const fabric::LaneTotals& io_totals() const { return io_totals_; }

 private:
  task::Task<void> serve(env::Env& env, env::Address at);

  SimBoxOptions options_;
  fabric::Target* target_ = nullptr;
  nvme::Registry* registry_ = nullptr;
  fabric::LaneTotals io_totals_;
};

}  // namespace cairn::lane_tests
