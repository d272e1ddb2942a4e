// SPDX-License-Identifier: Apache-2.0
// A simulated cluster of volumes: what its nodes share and outlives their crashes, and their
// programs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "arbiter/arbiter_testing.h"
#include "meta/state.h"
#include "tests/volume/cluster_facts.h"
#include "tests/volume/drive_faults.h"
#include "tests/volume/mail_link.h"
#include "tests/volume/operator.h"
#include "volume/medium_testing.h"
#include "volume/volume_drive.h"
#include "world/sim/cluster.h"

namespace cairn::volume_tests {

class VolumeCluster {
 public:
  // How clients reach arbiters: by letters that get lost (mail_link.h), or as live ones do.
  enum class Way : uint8_t { kLetters, kRpc };
  explicit VolumeCluster(Way way = Way::kLetters);
  void start(sim::Cluster& cluster);
  // All drives are in this one, which writes several of them with one command; 0: each by itself.
  void put_in_box(uint32_t box) {
    for (auto& [uri, medium] : media_) medium->box = box;
  }

  // What goes wrong with drives, as the test's timeline wants it.
  DriveFaults& faults() { return faults_; }
  // Clients stop writing: each opens its volume, waits until it is healed, and reads all of it.
  void rest() { facts_.is_resting = true; }
  bool is_checked() const;
  // Of the arbiter that leads; empty: all is well.
  std::string audit(bool is_final) const;

  // Everything goes in the end.
  void destroy_all() { operator_.destroy_all(); }
  // Of the arbiter that leads: no volume is left, and all of each drive is free that was not lost.
  bool is_all_free() const;

  uint64_t writes() const { return facts_.writes; }
  // Volumes that were opened although their former holder was not fenced at some drive.
  uint64_t unfenced_openings() const { return unfenced_openings_; }
  // How much was done, also with snapshots: a run in which nothing was checks nothing.
  const ClusterFacts& facts() const { return facts_; }
  const std::string& failure() const { return facts_.failure; }

 private:
  task::Task<void> run_store(env::Env& env, env::Address at);
  task::Task<void> run_arbiter(env::Env& env, std::string name, env::Address store);
  // One that this client opens next: of those that are not checked, when all is to be.
  std::string choose(env::Env& env, size_t number);
  task::Task<void> run_client(env::Env& env, size_t number);
  task::Task<void> serve_calls(env::Env& env, arbiter::ArbiterHost& arbiter, std::string name);
  task::Task<void> use_volumes(env::Env& env, volume::ArbiterLink& link, size_t number);
  const arbiter::Pool* pool() const;
  std::string compare_legs(const arbiter::Pool& pool) const;
  bool can_lose(const std::string& uri) const;

  const Way way_;
  std::map<std::string, env::Address> addresses_;  // of arbiters
  meta::State state_;
  volume::TestMedia media_;
  Mail mail_;
  ClusterFacts facts_;
  std::map<std::string, arbiter::ArbiterHost*> arbiters_;
  uint64_t processes_ = 0;  // that were started, for their names
  uint64_t unfenced_openings_ = 0;
  DriveFaults faults_;
  Operator operator_;
};

}  // namespace cairn::volume_tests
