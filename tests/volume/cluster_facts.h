// SPDX-License-Identifier: Apache-2.0
// What clients of a simulated cluster of volumes may find: an oracle of what each block may hold,
// of volumes and of their snapshots.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "task/deadline.h"
#include "task/task.h"
#include "volume/medium_testing.h"
#include "volume/types.h"
#include "volume/volume_drive.h"

namespace cairn::volume_tests {

inline constexpr uint64_t kExtent = volume::kExtentBytesMin;
inline constexpr uint64_t kExtentBlocks = kExtent / volume::TestMedium::kBlock;
inline constexpr size_t kDrives = 5;
inline constexpr uint32_t kVolumeExtents = 6;  // of data, each
inline std::string uri_of(size_t drive) { return fmt::format("m{}", drive); }

// Waits, or until the node stops.
inline task::Task<void> nap(env::Env& env, Duration time) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env, time, env.stop_token());
}

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

// What all nodes share, and no crash takes.
struct ClusterFacts {
  std::map<std::string, VolumeFacts> volumes;  // clones too
  std::map<std::string, SnapshotFacts> snapshots;
  // Clients stop writing: each opens its volume, waits until it is healed, and reads all of it.
  bool is_resting = false;
  uint64_t last_write = 0;  // numbers writes
  uint64_t writes = 0;      // that were answered
  uint64_t snapshots_made = 0;
  uint64_t snapshots_read = 0;  // all blocks of one
  uint64_t cloned = 0;
  uint64_t unshared = 0;  // extents that were copied before they were written
  std::string failure;    // the first

  // A change that snapshots under way may have.
  void begin(VolumeFacts& volume, uint64_t block, uint64_t change, uint64_t value);
  void fail_with(std::string text) {
    if (failure.empty()) failure = std::move(text);
  }
};

}  // namespace cairn::volume_tests
