// SPDX-License-Identifier: Apache-2.0
// VolumeUser: one opening of a volume of a simulated cluster, what its client does with it, and
// whether what it reads may be there.
#pragma once

#include <cstdint>
#include <string>

#include "env/env.h"
#include "task/task.h"
#include "tests/volume/cluster_facts.h"
#include "volume/volume_drive.h"

namespace cairn::volume_tests {

class VolumeUser {
 public:
  // All of them outlive it.
  VolumeUser(env::Env& env, volume::VolumeDrive& drive, ClusterFacts& facts)
      : env_(env), drive_(drive), facts_(facts) {}

  // For some time, or until clients rest: then it is checked.
  task::Task<void> use(VolumeFacts& volume);
  task::Task<void> read_snapshot(const std::string& name);

 private:
  task::Task<void> work(VolumeFacts& volume, uint64_t worker, Time until);
  task::Task<void> write(VolumeFacts& volume, uint64_t block);
  task::Task<void> read(VolumeFacts& volume, uint64_t block);
  task::Task<void> clear(VolumeFacts& volume, uint64_t extent);
  task::Task<void> flush(VolumeFacts& volume);
  task::Task<void> check(VolumeFacts& volume);

  env::Env& env_;
  volume::VolumeDrive& drive_;
  ClusterFacts& facts_;
};

}  // namespace cairn::volume_tests
