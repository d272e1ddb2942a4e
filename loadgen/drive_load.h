// SPDX-License-Identifier: Apache-2.0
// A load on a Drive, of any kind and in any world: what is asked of it, and what it did.
//
//   const DriveLoad load{.read_share = 0.7, .depth = 32, .duration = 10_s};
//   Result<LoadResult> result = co_await run_load(env, drive, load, token);
//
// Closed loop: `depth` requests are outstanding, and a new one follows each that completes. Open
// loop (rate above 0): requests are due at even distances, whatever the drive does, and a request's
// latency counts from when it was due. A drive that stalls thus pays for every request it kept
// from being sent, and not only for those it had.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::loadgen {

inline constexpr uint32_t kLoadDepthMax = 4096;

struct DriveLoad {
  enum class Order : uint8_t { kRandom, kSequential };
  Order order = Order::kRandom;
  double read_share = 1;  // of the requests, at random: 1 all read, 0 all write
  uint64_t request_size = 4_KiB;
  uint32_t depth = 128;  // outstanding at most, 1 to kLoadDepthMax
  double rate = 0;       // requests per second, all jobs together; 0: closed loop
  bool durable = false;  // writes survive a crash when they complete

  // The part of the drive that is used, in bytes; length 0: up to its end.
  uint64_t offset = 0;
  uint64_t length = 0;

  Duration warm_up = 0_s;  // before: not counted
  Duration duration = 1_s;
  uint64_t requests_max = 0;  // ends a job earlier, once so many were sent; 0: no such end
  uint64_t seed = 1;          // of places, of reads among writes, and of the bytes written

  // Reads the clock within a turn too, on the time line of Env::now(); null: Env::now(), which
  // stands still within a turn. Latencies are as fine as this.
  Time (*clock)() = nullptr;
};

// What came of it. Counts and latencies are those of the measured time: of requests that completed
// in it (closed loop), or that were due in it (open loop).
struct LoadResult {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  Duration measured;
  uint64_t completed = 0;  // in the measured time, whenever they were due
  double per_second = 0;   // of these
  uint64_t request_size = 0;
  // Open loop: due in the measured time, and never sent because `depth` others were outstanding.
  // Their latency is counted as their wait until the end, which is less than it would have been.
  uint64_t unsent = 0;
  Histogram read_latency_ns;
  Histogram write_latency_ns;
  // The first request that failed; then the load ended early. A cancelled load is no error.
  std::optional<Error> error;
  Lba error_lba;
  bool error_in_write = false;

  uint64_t requests() const { return reads + writes; }
  double bytes_per_second() const { return per_second * static_cast<double>(request_size); }
  Histogram latency_ns() const;  // of reads and writes together
  // Another job of the same load: counts and rates add up.
  void add(const LoadResult& other);
};

// kInvalid, with what is wrong: the request is no multiple of the block, larger than the drive
// takes or larger than the range; the range is not within the drive; depth, share or rate.
Result<void> check_load(const DriveLoad& load, const drive::Geometry& geometry);

// Called on the load's core: where processor time is read. Either may be empty.
struct LoadWatch {
  std::function<void()> begins;  // the measured time
  std::function<void()> ended;   // it, if it began
};

// Runs `load` on this core until its time is over, its requests are sent, one failed or `token` is
// requested; then waits for all that is outstanding. Allocates before the first request only.
// Errors: check_load's, and kLimit (no memory for depth x request_size). In a simulation the drive
// takes time, or requests_max ends the load: nothing else moves the clock.
task::Task<Result<LoadResult>> run_load(env::Env& env, drive::Drive& drive, DriveLoad load,
                                        task::CancelToken token = {}, LoadWatch watch = {});

}  // namespace cairn::loadgen
