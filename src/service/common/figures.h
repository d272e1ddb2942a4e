// SPDX-License-Identifier: Apache-2.0
// Figures: what has come to a layer of a stack, and how long it took there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "drive/drive.h"

namespace cairn::drive {

// Totals since the layer was opened; rates and latencies of the last 5 to 10 seconds.
struct LayerFigures {
  static constexpr size_t kKinds = 7;
  std::array<uint64_t, kKinds> requests{};  // done, by Request::Kind
  uint64_t read_bytes = 0;                  // by reads and compares
  uint64_t written_bytes = 0;
  uint64_t cleared_bytes = 0;  // discarded, or written with zeroes
  uint64_t errors = 0;         // a mismatch or a cancelled request is none
  uint64_t in_flight = 0;
  double requests_per_second = 0;
  double bytes_per_second = 0;  // read and written
  Duration p50;
  Duration p99;
  Duration longest;
  LatencyBuckets latency;  // of all requests since the layer was opened

  uint64_t done() const;
};

// Costs no allocation per request and no clock of its own: whoever records knows the time. What was
// done at once, without an operation, counts as taking no time.
class Figures {
 public:
  void begun() { ++totals_.in_flight; }
  void done(const Request& request, uint64_t bytes, const Result<void>& result, Duration took,
            Time now);
  void done_at_once(const Request& request, uint64_t bytes, const Result<void>& result, Time now);
  LayerFigures at(Time now);

 private:
  static constexpr Duration kWindow{5'000'000'000};
  struct Window {
    Time since;
    uint64_t requests = 0;
    uint64_t at_once = 0;  // of them
    uint64_t bytes = 0;
    std::unique_ptr<Histogram> latency;  // of the others
  };
  void turn_windows(Time now);
  void clear(Window& window, Time now);
  void count(const Request& request, uint64_t bytes, const Result<void>& result, Time now);

  LayerFigures totals_;
  Window newer_;
  Window older_;
};

}  // namespace cairn::drive
