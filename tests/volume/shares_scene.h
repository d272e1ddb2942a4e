// SPDX-License-Identifier: Apache-2.0
// Clients with volumes over modelled drives that they share, and an arbiter with its market, each
// on a node of its own of the simulator, in virtual time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arbiter/arbiter_testing.h"
#include "arbiter/market/market_service.h"
#include "meta/state.h"
#include "share/auction.h"
#include "task/task.h"
#include "view/view.h"
#include "volume/medium_testing.h"
#include "volume/steering/steered_source.h"
#include "volume/volume_drive.h"
#include "world/sim/cluster.h"

namespace cairn::volume_tests {

inline constexpr uint64_t kMB = 1'000'000;

// A drive that does one request after the other, at so many bytes a second, whoever asks; a byte
// that is written takes as long as two that are read.
struct SlowDrive {
  uint64_t bytes_per_s = 100 * kMB;
  Time free_at;
};

// What a client does with its volume.
struct Load {
  share::Terms terms;
  size_t depth = 8;
  uint32_t bytes = 65536;
  bool writes = false;
  Duration pause{};  // between an answer and the next request
  bool notes = true;
  bool orders = true;
  bool holds = true;
};

class SharesScene {
 public:
  // Two arbiters of which one leads, unless one is enough.
  SharesScene(uint64_t seed, std::vector<uint64_t> drives_bytes_per_s, size_t arbiters = 1);
  ~SharesScene();

  // What the arbiter is told that drives do whatever is asked of them: so many percent of their
  // rate. Before anything runs.
  void promise(uint64_t percent) { promised_percent_ = percent; }
  // Client "c0", "c1"... has volume "v0", "v1"... and uses it from when it is start()ed.
  size_t add(const Load& load);
  // All have opened their volumes and written them once. Nobody uses them yet.
  [[nodiscard]] bool open_all();
  void use(size_t which, bool is_on = true) { clients_[which]->is_on = is_on; }
  void use_all() {
    for (size_t i = 0; i < clients_.size(); ++i) use(i);
  }

  sim::Cluster& cluster() { return cluster_; }
  sim::Node& client(size_t which) { return cluster_.node("c" + std::to_string(which)); }
  sim::Node& arbiter(size_t which = 0) { return cluster_.node("arbiter" + std::to_string(which)); }
  // Of the process that leads; nullptr: none does.
  arbiter::Market* market();
  arbiter::ArbiterHost* host();
  void set_terms(size_t which, share::Terms terms);

  void run(Duration time) { cluster_.run_for(time); }
  // What was served since then.
  void mark();
  double bytes_per_s(size_t which) const;
  double all_bytes_per_s() const;
  // The longest and the median time that a request took since then.
  Duration slowest(size_t which) const;
  Duration median(size_t which) const;
  uint64_t failures() const { return failures_; }
  std::vector<SlowDrive>& drives() { return drives_; }
  volume::Steering::Counters steering(size_t which) const { return clients_[which]->steering; }

 private:
  struct Client {
    Load load;
    std::string volume;
    bool is_on = false;
    bool is_ready = false;
    uint64_t life = 0;
    uint64_t served = 0;
    std::vector<Duration> took;
    volume::Steering::Counters steering;
  };
  struct Leading;

  task::Task<void> run_arbiter(env::Env& env, size_t which);
  task::Task<void> make_pool(env::Env& env, arbiter::ArbiterHost& host);
  task::Task<void> run_client(env::Env& env, Client& client);
  task::Task<void> use_volume(env::Env& env, volume::VolumeDrive& drive, Client& client);
  task::Task<void> worker(env::Env& env, volume::VolumeDrive& drive, Client& client, uint64_t seed);
  std::vector<env::Address> servers();

  sim::Cluster cluster_;
  std::vector<SlowDrive> drives_;
  volume::TestMedia media_;
  meta::State state_;
  size_t arbiters_;
  std::vector<Leading*> running_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::pair<std::string, share::Terms>> changes_;
  Time marked_;
  uint64_t failures_ = 0;
  uint64_t processes_ = 0;
  uint64_t promised_percent_ = 100;
};

}  // namespace cairn::volume_tests
