// SPDX-License-Identifier: Apache-2.0
// A guest's driver under load, without a guest: queues in shared memory, doorbells, and a core that
// does nothing but look for completions.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "bench/world_load.h"
#include "env/address.h"
#include "env/env.h"
#include "loadgen/drive_load.h"
#include "task/task.h"

namespace cairn::bench {

struct GuestLoad {
  env::Address at;               // of a vfio-user controller
  double read_share = 1;         // of the requests, at random
  uint32_t depth = 1;            // outstanding, 1 to 1023
  uint64_t request_size = 4096;  // a multiple of that, up to 1 MiB
  // Bytes at the beginning of namespace 1 that are used; all are written first, for memory that was
  // never written reads faster than it should.
  uint64_t size = 0;
  Duration warm_up = 50_ms;
  Duration duration = 500_ms;
  uint64_t seed = 1;
  // Called after the filling and at the end, with nothing in flight. Either may be empty.
  loadgen::LoadWatch watch;
};

struct GuestResult {
  uint64_t requests = 0;  // all between the calls of the watch; the rest is of the measured ones
  double per_second = 0;
  Histogram latency_ns;
};

// Takes the whole core until it is over. kIo: a command failed; kTimedOut: nothing completed for
// seconds; else as of connecting.
task::Task<Result<GuestResult>> run_guest_load(env::Env& env, GuestLoad load);
// The same in a world of its own, on that CPU.
Result<GuestResult> run_guest_load_on(const WorldFactory& world, int cpu, const GuestLoad& load);

}  // namespace cairn::bench
