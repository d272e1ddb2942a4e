// SPDX-License-Identifier: Apache-2.0
// A box in the test's own world: a registry and a target over memory, on every core.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "env/env.h"
#include "fabric/target/target.h"
#include "nvme/controller/registry.h"
#include "task/task.h"
#include "testing/target/test_drive.h"
#include "testing/worlds/suite.h"
#include "testing/worlds/verbs.h"

namespace cairn::target_tests {

inline const std::string kNqn = "nqn.2026-11.io.cairn:box";
inline const std::string kClosedNqn = "nqn.2026-11.io.cairn:closed";  // to nobody but kFriendNqn
inline const std::string kFriendNqn = "nqn.2026-11.io.cairn:friend";
inline constexpr uint32_t kBlock = 4096;
inline constexpr uint64_t kBlocks = 1024;

struct BoxOptions {
  fabric::TargetOptions target;
  std::vector<std::string> drives = {"mem:size=4M",
                                     "mem:size=4M"};  // namespaces from 1 on, by TestDrive
  uint16_t queue_entries_max = 32;
};

// Opened, used, closed; on one core of any world.
class Box {
 public:
  Box(env::Env& env, const BoxOptions& options = {})
      : env_(env), options_(options), registry_(env), target_(env, registry_, options.target) {}

  task::Task<void> open(env::Address at) {
    for (const std::string& nqn : {kNqn, kClosedNqn}) {
      nvme::SubsystemOptions subsystem;
      subsystem.nqn = nqn;
      subsystem.queue_entries_max = options_.queue_entries_max;
      subsystem.queues_max = 8;
      subsystem.allow_any_host = nqn == kNqn;
      if (nqn == kClosedNqn) subsystem.hosts = {kFriendNqn};
      conformance::must(registry_.add_subsystem(subsystem));
    }
    for (const std::string& drive : options_.drives) {
      const nvme::NamespaceOptions space = co_await drives_.emplace_back().open(env_, drive);
      Result<uint32_t> added = co_await registry_.add_namespace(kNqn, space);
      conformance::must(added);
    }
    address = conformance::must(target_.listen(at));
  }
  task::Task<void> close() {
    co_await target_.close();
    co_await registry_.close();
    for (TestDrive& drive : drives_) co_await drive.close(env_);
  }

  nvme::Registry& registry() { return registry_; }
  fabric::Target& target() { return target_; }
  TestDrive& drive(size_t index) { return drives_[index]; }
  env::Address address;

 private:
  env::Env& env_;
  BoxOptions options_;
  std::deque<TestDrive> drives_;
  nvme::Registry registry_;
  fabric::Target target_;
};

}  // namespace cairn::target_tests
