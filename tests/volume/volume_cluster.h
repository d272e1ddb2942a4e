// SPDX-License-Identifier: Apache-2.0
// A simulated cluster of volumes: what its nodes share and outlives their crashes, their programs,
// and an oracle of what each block may hold.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "arbiter/arbiter_host.h"
#include "arbiter/arbiter_testing.h"
#include "meta/state.h"
#include "tests/volume/mail_link.h"
#include "volume/medium_testing.h"
#include "volume/volume_drive.h"
#include "world/sim/cluster.h"

namespace cairn::volume_tests {

inline constexpr uint64_t kExtent = volume::kExtentBytesMin;
inline constexpr uint64_t kExtentBlocks = kExtent / volume::TestMedium::kBlock;
inline constexpr size_t kDrives = 5;
inline constexpr uint32_t kVolumeExtents = 6;  // of data, each

// What a volume's blocks may hold. Changes have numbers that grow; a write writes its own, and one
// that clears the block writes zero.
class Oracle {
 public:
  // A change begins: the block may hold it from now on.
  void begin(uint64_t block, uint64_t change, uint64_t value) {
    blocks_[block].possible.push_back({change, value});
  }
  // It was answered, and no other began since.
  void acknowledge(uint64_t block, uint64_t change) { blocks_[block].acknowledged = change; }

  // What a flush that begins now promises.
  using Promise = std::map<uint64_t, uint64_t>;
  Promise promise() const;
  // It succeeded: what came before those changes is gone for good.
  void keep(const Promise& promise);
  // What was acknowledged and not flushed is merely possible: somebody else writes the volume now,
  // or a flush said that something was lost.
  void doubt();

  bool is_possible(uint64_t block, uint64_t value) const;
  // The same of what was acknowledged by the present holder and came later.
  bool is_present(uint64_t block, uint64_t value) const;
  // The block held one of these when all began.
  void seed(uint64_t block, const std::set<uint64_t>& values);
  std::set<uint64_t> values(uint64_t block) const;
  uint64_t doubts() const { return doubts_; }
  std::string text(uint64_t block) const;

 private:
  struct Change {
    uint64_t number = 0;
    uint64_t value = 0;
  };
  struct Block {
    std::vector<Change> possible = {{}};  // in the order in which they began
    uint64_t acknowledged = 0;            // by the present holder; 0: none
  };
  std::map<uint64_t, Block> blocks_;
  uint64_t doubts_ = 0;
};

// A snapshot: what its blocks may hold. What was acknowledged when it was asked for is in it, if
// the volume has one holder meanwhile; what began later than the answer is not.
struct SnapshotFacts {
  Oracle before;
  std::map<uint64_t, std::set<uint64_t>> begun;  // since it was asked for, by blocks
  uint64_t epoch = 0;                            // of the volume's opening then
  bool is_made = false;                          // it was answered
  bool has_one_holder = false;
  bool is_checked = false;
  std::map<uint64_t, uint64_t> seen;  // what was read once is read ever after
  bool may_hold(uint64_t block, uint64_t value) const {
    const auto found = begun.find(block);
    if (found != begun.end() && found->second.contains(value)) return true;
    return has_one_holder ? before.is_present(block, value) : before.is_possible(block, value);
  }
  std::set<uint64_t> values(uint64_t block) const {
    std::set<uint64_t> all = before.values(block);
    const auto found = begun.find(block);
    if (found != begun.end()) all.insert(found->second.begin(), found->second.end());
    return all;
  }
};

struct VolumeFacts {
  std::string name;
  uint32_t replicas = 3;
  Oracle oracle;
  uint64_t epoch = 0;                          // of its newest opening
  const volume::VolumeDrive* drive = nullptr;  // of its newest opening, while it is used
  bool is_checked = false;                     // in the end: healed, and all blocks read
};

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

  // Something happens to drives now and then.
  void hurt_drives(Rng& rng);
  void heal_drives();
  // A box with one drive goes away for longer than a lease, or arbiters alone do not reach it;
  // often a client dies with it.
  void lose_boxes(sim::Cluster& cluster, Rng& rng);
  // Clients stop writing: each opens its volume, waits until it is healed, and reads all of it.
  void rest() { is_resting_ = true; }
  bool is_checked() const;
  // Of the arbiter that leads; empty: all is well.
  std::string audit(bool is_final) const;

  // Everything goes in the end.
  void destroy_all() { is_destroying_ = true; }
  // Of the arbiter that leads: no volume is left, and all of each drive is free that was not lost.
  bool is_all_free() const;

  uint64_t writes() const { return writes_; }
  // Volumes that were opened although their former holder was not fenced at some drive.
  uint64_t unfenced_openings() const { return unfenced_openings_; }
  // How much was done with snapshots: a run in which nothing was checks nothing.
  struct Counters {
    uint64_t made = 0;
    uint64_t read = 0;  // all blocks of one
    uint64_t cloned = 0;
    uint64_t unshared = 0;  // extents that were copied before they were written
  };
  const Counters& counters() const { return counters_; }
  const std::string& failure() const { return failure_; }

 private:
  task::Task<void> run_store(env::Env& env, env::Address at);
  task::Task<void> run_arbiter(env::Env& env, std::string name, env::Address store);
  task::Task<void> make_pool(env::Env& env, arbiter::ArbiterHost& host);
  task::Task<void> use_snapshots(env::Env& env, arbiter::Arbiter& arbiter);
  task::Task<void> make_snapshot(arbiter::Arbiter& arbiter, std::string volume);
  task::Task<void> destroy_volumes(arbiter::Arbiter& arbiter);
  // One that this client opens next: of those that are not checked, when all is to be.
  std::string choose(env::Env& env, size_t number);
  task::Task<void> read_snapshot(env::Env& env, volume::VolumeDrive& drive,
                                 const std::string& name);
  void begin(VolumeFacts& volume, uint64_t block, uint64_t change, uint64_t value);
  task::Task<void> run_client(env::Env& env, size_t number);
  task::Task<void> serve_calls(env::Env& env, arbiter::ArbiterHost& arbiter, std::string name);
  task::Task<void> use_volumes(env::Env& env, volume::ArbiterLink& link, size_t number);
  task::Task<void> use(env::Env& env, volume::VolumeDrive& drive, VolumeFacts& volume);
  task::Task<void> work(env::Env& env, volume::VolumeDrive& drive, VolumeFacts& volume,
                        uint64_t worker, Time until);
  task::Task<void> write(env::Env& env, volume::VolumeDrive& drive, VolumeFacts& volume,
                         uint64_t block);
  task::Task<void> read(volume::VolumeDrive& drive, VolumeFacts& volume, uint64_t block);
  task::Task<void> clear(env::Env& env, volume::VolumeDrive& drive, VolumeFacts& volume,
                         uint64_t extent);
  task::Task<void> flush(volume::VolumeDrive& drive, VolumeFacts& volume);
  task::Task<void> check(env::Env& env, volume::VolumeDrive& drive, VolumeFacts& volume);
  const arbiter::Pool* pool() const;
  std::string compare_legs(const arbiter::Pool& pool) const;
  bool can_lose(const std::string& uri) const;
  void fail_with(std::string text) {
    if (failure_.empty()) failure_ = std::move(text);
  }

  const Way way_;
  std::map<std::string, env::Address> addresses_;  // of arbiters
  meta::State state_;
  volume::TestMedia media_;
  Mail mail_;
  std::map<std::string, VolumeFacts> volumes_;  // clones too
  std::map<std::string, SnapshotFacts> snapshots_;
  std::map<std::string, arbiter::ArbiterHost*> arbiters_;
  uint64_t processes_ = 0;   // that were started, for their names
  uint64_t last_write_ = 0;  // numbers writes
  uint64_t writes_ = 0;      // that were answered
  uint64_t unfenced_openings_ = 0;
  volume::TestMedium* lost_box_ = nullptr;  // null: all are there
  Time lost_until_;
  uint64_t last_snapshot_ = 0;  // numbers snapshots and clones
  Counters counters_;
  bool is_destroying_ = false;
  bool has_lost_one_ = false;
  uint32_t until_power_fails_ = 0;  // ticks in which no drive loses power
  bool is_resting_ = false;
  std::string failure_;
};

}  // namespace cairn::volume_tests
