// SPDX-License-Identifier: Apache-2.0
// PoolScene: a pool of drives in this process, with an arbiter that keeps its metadata in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "base/error.h"
#include "bench/volume/media.h"
#include "env/env.h"
#include "meta/local_store.h"
#include "task/gate.h"
#include "task/task.h"
#include "volume/steering/steering.h"
#include "volume/volume_drive.h"

namespace cairn::bench {

// One core. close() before it is destroyed, when the volumes are closed.
class PoolScene {
 public:
  // An arbiter leads, and each of the media is a member.
  static task::Task<Result<std::unique_ptr<PoolScene>>> make(env::Env& env,
                                                             std::unique_ptr<Media> media);
  // Use make().
  PoolScene(env::Env& env, std::unique_ptr<Media> media);
  ~PoolScene();

  task::Task<Result<void>> create(std::string name, uint64_t bytes, uint32_t replicas);
  // The client is known by the volume's name. Errors of VolumeDrive::open().
  task::Task<Result<std::unique_ptr<volume::VolumeDrive>>> open(std::string name,
                                                                volume::VolumeOptions options = {});

  // The same with its requests counted for a view, ordered and held to slices, by a market that is
  // reached through this machine's loopback. One volume at most; errors of Env::listen too.
  task::Task<Result<std::unique_ptr<volume::VolumeDrive>>> open_steered(
      std::string name, volume::VolumeOptions options = {});
  // How it does: none, it is not open so.
  const volume::Steering* steering() const;

  arbiter::ArbiterHost& host() { return *host_; }
  Media& media() { return *media_; }
  // No arbiter answers until start_arbiter().
  task::Task<void> stop_arbiter();
  task::Task<Result<void>> start_arbiter();
  task::Task<void> close();

 private:
  env::Env& env_;
  std::unique_ptr<Media> media_;
  std::unique_ptr<meta::Store> store_;
  arbiter::NoFence fence_;
  std::unique_ptr<arbiter::ArbiterHost> host_;
  std::unique_ptr<task::Gate> running_;  // of the host
  struct Steered;
  std::unique_ptr<Steered> steered_;
};

}  // namespace cairn::bench
