// SPDX-License-Identifier: Apache-2.0
// PromiseHost: one machine with a stack under load, whose disks fail and whose power fails when a
// test says so; and whether its blocks then are what they must be.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/rng.h"
#include "env/disk.h"
#include "testing/stack/stack_load.h"
#include "world/sim/cluster.h"

namespace cairn::stack {

class PromiseHost {
 public:
  // `load` lives as long as the programs of the machine do. Flushes of its disks are slow.
  PromiseHost(uint64_t seed, LoadOptions load);

  // Asked of every request of any disk while `breaks` is set, with how many came before it since.
  using Break = std::function<Result<void>(uint64_t number, const env::DiskOp::Request& request)>;
  void set_break(Break breaks) { break_ = std::move(breaks); }
  uint64_t asked() const { return asked_; }
  // From when the load begins; otherwise from when the machine starts.
  bool breaks_late = true;

  // The machine starts, for the first time or after its power came back.
  void start();
  // Until so many flushes, or durable changes, or requests have succeeded since it started, or it
  // ended by itself.
  [[nodiscard]] bool runs_until_flushed(uint64_t count);
  [[nodiscard]] bool runs_until_durable(uint64_t count);
  [[nodiscard]] bool runs_until_done(uint64_t count);
  [[nodiscard]] bool runs_to_its_end(Duration limit = 1000_s);
  void run_for(Duration duration) { cluster_.run_for(duration); }
  bool is_running() { return node().is_running(); }
  // Power fails, now.
  void crash();
  // The program is killed; disks keep their caches.
  void kill();
  void stop_breaking() { break_ = nullptr; }

  StackLoad& load() { return load_; }
  Rng& rng() { return rng_; }
  // The first thing that was wrong, with a trace; empty: nothing.
  std::string failure() const;
  std::string report() const { return cluster_.report(); }

 private:
  sim::Node& node() { return cluster_.node("host"); }
  [[nodiscard]] bool runs_until(const std::function<bool()>& is_time);
  Result<void> judge(const env::DiskOp::Request& request);

  StackLoad load_;
  Break break_;
  uint64_t asked_ = 0;
  bool is_loading_ = false;
  uint64_t flushed_ = 0;
  uint64_t durable_ = 0;
  Rng rng_;
  bool has_started_ = false;
  sim::Cluster cluster_;
};

}  // namespace cairn::stack
