// SPDX-License-Identifier: Apache-2.0
// The two loads every contestant carries, and the meters that are read alike in all of them.
//
// stream: the client writes `write_size` again and again; the server reads up to `read_size` at a
// time and measures what arrives. pingpong: the client sends `message_size` and waits for the same
// bytes back; the client measures.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/histogram.h"
#include "base/units.h"
#include "loadgen/meters.h"

namespace cairn::bench {

// The meters of all measurements here.
using loadgen::cpu_time;
using loadgen::now;
using loadgen::pass_time;

struct Load {
  double seconds = 0.2;
  double warm_up_seconds = 0.04;  // before: congestion windows open, buffers are sized
  uint32_t write_size = 128_KiB;
  uint32_t read_size = 256_KiB;
  uint32_t message_size = 4_KiB;
  // One CPU for each side; -1: wherever the kernel likes.
  int server_cpu = 0;
  int client_cpu = 1;

  Duration total() const { return Duration::from_seconds(warm_up_seconds + seconds); }
};

// Whether a client goes on: until its time is over, and on a machine too busy to let it run in its
// time, until it has done something to measure.
class Turns {
 public:
  explicit Turns(const Load& load) : end_(now() + load.total()) {}
  bool goes_on(Time at) { return at < end_ || done_++ < kDoneMin; }

 private:
  static constexpr int kDoneMin = 16;  // counted once the time is over
  Time end_;
  int done_ = 0;
};

// What one contestant did in one round.
struct Sample {
  double per_second = 0;            // bytes (stream) or round trips (pingpong)
  double cpu_us_per_operation = 0;  // of both sides; an operation is a write or a round trip
  Histogram latency_ns;             // of round trips; empty for stream
};

// Counts from the first event after the warm-up to the last event; when the warm-up swallowed all
// but those of one moment, from the very first. The warm-up ends with the load's time at the
// latest: on a machine that was too busy until then, what Turns does afterwards is all there is to
// measure.
class Meter {
 public:
  explicit Meter(const Load& load)
      : warm_up_(Duration::from_seconds(load.warm_up_seconds)), end_(now() + load.total()) {}

  // `amount` more at time `at`. True once the warm-up is over.
  bool add(uint64_t amount, Time at) {
    total_ += amount;
    last_ = at;
    if (started_.ns == 0) {
      started_ = at;
      first_ = amount;
    }
    if (begin_.ns == 0) {
      if (at - started_ >= warm_up_ || at >= end_) begin_ = at;
      return false;
    }
    measured_ += amount;
    return true;
  }
  uint64_t total() const { return total_; }
  double per_second() const {
    if (measured_ > 0 && last_ > begin_) return rate(measured_, last_ - begin_);
    return rate(total_ - first_, last_ - started_);
  }

 private:
  static double rate(uint64_t amount, Duration time) {
    return time.ns > 0 ? static_cast<double>(amount) / time.seconds() : 0;
  }

  Duration warm_up_;
  Time end_;
  Time started_;
  Time begin_;
  Time last_;
  uint64_t total_ = 0;
  uint64_t first_ = 0;
  uint64_t measured_ = 0;
};

// CPU time since construction, shared among operations.
class CpuMeter {
 public:
  CpuMeter() : start_(cpu_time()) {}
  double us_per(double operations) const {
    return operations > 0 ? (cpu_time() - start_).us() / operations : 0;
  }

 private:
  Duration start_;
};

}  // namespace cairn::bench
