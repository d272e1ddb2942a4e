// SPDX-License-Identifier: Apache-2.0
// Replay: the requests of a trace on any drive, and how long they took.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/task.h"
#include "trace/record.h"

namespace cairn::drive {

struct ReplayOptions {
  double speed = 1;      // times as fast as recorded; 0: as fast as the drive allows
  uint32_t depth = 256;  // requests in flight at most; later ones wait, and count from their time
  uint64_t requests = UINT64_MAX;
};

struct ReplayResult {
  Histogram read_ns;
  Histogram write_ns;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes = 0;
  uint64_t errors = 0;
  uint64_t late = 0;  // started after their time, because too many were in flight
  Duration took;
  std::optional<Error> first_error;
};

// The next request, in order of arrival from zero; none: that was all.
using ReplaySource = std::function<std::optional<trace::Record>()>;

// Offsets beyond the drive wrap around; requests become whole blocks, and those larger than the
// drive transfers are split and done when all of it is. What is written is zeroes. Ends after the
// last request, or soon after `token`, with what was done by then. kLimit: no buffers. `drive` and
// `source` outlive it; a latency counts from when the trace says that the request arrives.
task::Task<Result<ReplayResult>> replay(env::Env& env, Drive& drive, ReplaySource& source,
                                        ReplayOptions options, task::CancelToken token);

}  // namespace cairn::drive
