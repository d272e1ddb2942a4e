// SPDX-License-Identifier: Apache-2.0
// FaultPlan: what goes wrong in a run and when, as a list that can be printed and made shorter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "world/sim/cluster.h"

namespace cairn::sim {

struct Fault {
  enum class Kind : uint8_t {
    kCrash,            // power loss of `node`; restarted after `duration`
    kKill,             // death of its process; restarted after `duration`
    kPause,            // for `duration`
    kClockStep,        // its wall clock, by `amount` ns
    kClog,             // between `node` and `other`, for `duration`
    kPartition,        // the same
    kPartitionOneWay,  // from `node` to `other`, for `duration`
    kIsolate,          // `node` from all others, for `duration`
    kReset,            // of all streams between `node` and `other`
    kDiskStall,        // of disk `other` of `node`, for `duration`
    kDiskFull,         // the same
    kDiskReadErrors,   // the same, of all reads
    kDiskWriteErrors,  // the same, of all writes
    kDiskLatent,       // a block at `amount` bytes cannot be read until it is rewritten
  };

  Kind kind{};
  std::string node;
  std::string other;  // a node, or the path of a disk
  Duration at;        // from the start of the run
  Duration duration;
  int64_t amount = 0;

  // "at 1.5 s: crash of a for 200 ms".
  std::string text() const;
  friend bool operator==(const Fault&, const Fault&) = default;
};

using FaultPlan = std::vector<Fault>;
std::string text(const FaultPlan& plan);

// What may go wrong. Kinds whose targets are missing are not drawn.
struct FaultMix {
  struct DiskName {
    std::string node;
    std::string path;
    uint64_t size = 0;  // for latent errors; 0: none
  };

  std::vector<std::string> nodes;  // victims of crash, kill, pause, clock step and isolation
  std::vector<std::string> peers;  // ends of links that fail; empty: `nodes`
  std::vector<DiskName> disks;
  std::vector<Fault::Kind> kinds = {
      Fault::Kind::kCrash,           Fault::Kind::kKill,    Fault::Kind::kPause,
      Fault::Kind::kClockStep,       Fault::Kind::kClog,    Fault::Kind::kPartition,
      Fault::Kind::kPartitionOneWay, Fault::Kind::kIsolate, Fault::Kind::kReset,
      Fault::Kind::kDiskStall};
  uint32_t count_max = 10;
  Duration duration_max = 2_s;
  Duration clock_step_max = 3600_s;
};

// A plan for a phase that begins with the run: all of it is over when the phase is.
FaultPlan draw_plan(const FaultMix& mix, Duration phase, Rng& rng);

// Has the faults happen, from now on as time zero. Nodes that are down, or disks that nobody has
// opened yet, are left alone.
void apply_plan(Cluster& cluster, const FaultPlan& plan);

}  // namespace cairn::sim
