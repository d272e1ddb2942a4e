// SPDX-License-Identifier: Apache-2.0
// A load on a vhost-user server without a guest: virtqueues in shared memory, kicks and calls, and
// a driver that sleeps while nothing is answered.
#pragma once

#include <cstdint>
#include <functional>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "bench/world_load.h"
#include "env/address.h"
#include "env/env.h"
#include "loadgen/drive_load.h"
#include "task/task.h"

namespace cairn::bench {

inline constexpr uint32_t kVhostDepthMax = 64;

struct VhostLoad {
  env::Address at;
  double read_share = 1;         // of the requests, at random
  uint64_t request_size = 4096;  // up to 128 KiB, whole blocks
  uint32_t depth = 1;            // outstanding, 1 to kVhostDepthMax
  bool sequential = false;       // else anywhere
  uint64_t size = 0;             // of the drive, from its beginning on, that is used
  Duration duration = 500_ms;
  uint64_t seed = 1;
  // Told when each request was answered; false ends the load before its time. May be empty.
  std::function<bool(Time at)> on_answer;
  // Called when connected and at the end, with nothing in flight. Either may be empty.
  loadgen::LoadWatch watch;
};

struct VhostLoadResult {
  uint64_t requests = 0;
  double per_second = 0;
  Histogram latency_ns;
};

// Until its time is over and all is answered. kIo: a request failed; kInvalid: the server lacks
// what the driver needs; else as of connecting.
task::Task<Result<VhostLoadResult>> run_vhost_load(env::Env& env, VhostLoad load);
// The same in a world of its own, on that CPU.
Result<VhostLoadResult> run_vhost_load_on(const WorldFactory& world, int cpu,
                                          const VhostLoad& load);

}  // namespace cairn::bench
