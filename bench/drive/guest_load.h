// SPDX-License-Identifier: Apache-2.0
// A guest's driver under load, without a guest: queues in shared memory, doorbells, and a core that
// does nothing but look for completions.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::bench {

struct GuestLoad {
  env::Address at;        // of a vfio-user controller
  double read_share = 1;  // of the requests, by chance
  uint32_t depth = 1;     // outstanding, 1 to 1023
  // Of 4 KiB, at the beginning of namespace 1, that are used; all are written first, for memory
  // that was never written reads faster than it should.
  uint64_t blocks = 0;
  Duration warm_up = 50_ms;
  Duration duration = 500_ms;
  uint64_t seed = 1;
};

struct GuestResult {
  double per_second = 0;
  Histogram latency_ns;
};

// Takes the whole core until it is over. kIo: a command failed; kTimedOut: nothing completed for
// seconds; else as of connecting.
task::Task<Result<GuestResult>> run_guest_load(env::Env& env, GuestLoad load);

}  // namespace cairn::bench
