// SPDX-License-Identifier: Apache-2.0
// World: virtual time and what all nodes of one simulation share. Internal; tests use cluster.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/rng.h"
#include "base/units.h"
#include "world/sim/byte_queue.h"
#include "world/sim/event_queue.h"
#include "world/sim/options.h"
#include "world/sim/trace_log.h"

namespace cairn::sim {

class World {
 public:
  explicit World(const ClusterOptions& options)
      : options_(options), disk_faults_(options.disk.faults), trace_(options.trace_capacity) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const ClusterOptions& options() const { return options_; }
  // The probabilities that new disks begin with; at first those of the options.
  const DiskFaults& disk_faults() const { return disk_faults_; }
  void set_disk_faults(const DiskFaults& faults) { disk_faults_ = faults; }
  // True time, which no node need agree with. It begins at 0.
  Time now() const { return now_; }
  uint64_t events_run() const { return events_run_; }
  TraceLog& trace() { return trace_; }
  BlockPool& blocks() { return blocks_; }
  // The queue of events; schedule() never goes back in time.
  EventQueue& queue() { return queue_; }
  void schedule(Event& event, Time when) { queue_.schedule(event, when < now_ ? now_ : when); }

  // A generator for one purpose: the same seed and purpose give the same draws, whatever else the
  // run draws meanwhile.
  Rng make_rng(std::string_view purpose, uint64_t number = 0) const;

  // Runs the next event if it is due by `limit`; false when there is none.
  bool step(Time limit);
  // Nothing happens until `when`; all earlier events must have run.
  void advance_to(Time when);

 private:
  // So many events without time passing mean that programs keep each other busy for ever.
  static constexpr uint64_t kSameTimeMax = 5'000'000;

  ClusterOptions options_;
  DiskFaults disk_faults_;
  Time now_;
  TraceLog trace_;
  BlockPool blocks_;
  EventQueue queue_;
  uint64_t events_run_ = 0;
  uint64_t same_time_ = 0;
};

}  // namespace cairn::sim
