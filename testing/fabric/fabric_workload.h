// SPDX-License-Identifier: Apache-2.0
// Hosts and a box in the simulator: every host writes, reads and flushes blocks of its own and
// competes for shared ones by compare-and-write, while an Oracle knows what can be there.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "env/env.h"
#include "fabric/host/remote_drive.h"
#include "task/task.h"
#include "testing/fabric/oracle.h"
#include "world/sim/cluster.h"
#include "world/sim/scenario/scenario.h"

namespace cairn::fabric_tests {

inline constexpr const char* kBoxName = "box";
inline constexpr const char* kDiskName = "disk";
inline constexpr uint32_t kWorkers = 2;       // of a host
inline constexpr uint64_t kSharedBlocks = 4;  // at the beginning
inline constexpr uint64_t kOwnBlocks = 80;    // of a worker

struct HostKind {
  const char* name;
  bool two_paths = false;
  bool digests = false;
  uint16_t queues = 1;
  size_t drives = 1;  // that share the host's controllers, workers in turn
};

// What compare-and-writes of all hosts did to one shared block. They are durable, so that a power
// loss takes none of them back.
struct SharedBlock {
  std::set<uint64_t> gone;  // values that were replaced for sure
};

class FabricWorkload final : public sim::Workload {
 public:
  explicit FabricWorkload(std::vector<HostKind> hosts);

  void start(sim::Cluster& cluster) override;
  uint64_t progress() const override;
  std::string check(sim::Cluster& cluster) override;

  static uint64_t disk_size(size_t hosts) {
    return (kSharedBlocks + hosts * kWorkers * kOwnBlocks) * kBlock;
  }

 private:
  task::Task<void> run_box(env::Env& env, std::vector<env::Address> listen);
  task::Task<void> run_host(env::Env& env, size_t index, std::vector<env::Address> paths);
  task::Task<void> run_worker(env::Env& env, fabric::RemoteDrive& drive, size_t index);
  task::Task<void> run_rival(env::Env& env, fabric::RemoteDrive& drive, size_t index);
  task::Task<bool> read(env::Env& env, fabric::RemoteDrive& drive, uint64_t first);
  task::Task<bool> write(env::Env& env, fabric::RemoteDrive& drive, uint64_t first);
  task::Task<bool> clear(env::Env& env, fabric::RemoteDrive& drive, uint64_t first);
  task::Task<bool> flush(fabric::RemoteDrive& drive, uint64_t first, env::Env& env);
  task::Task<bool> compete(env::Env& env, fabric::RemoteDrive& drive, uint64_t lba);
  task::Task<void> settle(env::Env& env) const;

  std::vector<HostKind> hosts_;
  Oracle oracle_;
  std::vector<SharedBlock> shared_;
  std::vector<uint64_t> starts_;  // of each host
  std::vector<uint64_t> done_;    // operations of each worker, and behind them of each rival
};

}  // namespace cairn::fabric_tests
