// SPDX-License-Identifier: Apache-2.0
// FabricPair: our host in this process and our box in its own, and the loads they carry.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "bench/box_process.h"
#include "bench/exchange_figures.h"
#include "loadgen/drive_load.h"
#include "loadgen/load_jobs.h"

namespace cairn::bench {

// How the host meets the box for one load.
struct HostSetup {
  bool poll = false;
  std::optional<Duration> nap = Duration{0};  // env::WorldOptions
  fabric::DoorbellOptions doorbell;
  bool digests = false;     // of headers and of data
  uint32_t sessions = 1;    // with each target of the box: so many hosts, as it sees them
  uint16_t queues = 1;      // for I/O, of each session: a connection each
  bool time_calls = false;  // for the parts of SideCost
  uint32_t strangers = 0;   // hostile connections to the box meanwhile (strangers.h)
};

class FabricPair {
 public:
  // The box is running, its drives are filled (memory that was never written is one page of zeroes
  // to the kernel, and always cached), and it is paused until somebody needs it.
  static Result<std::unique_ptr<FabricPair>> start(const BoxProcessOptions& box, int host_cpu);

  // Carries `load` by every session at once; its depth, and its rate if any, are shared among them.
  // Opening and closing do not count. A box that knows one
  // host only takes this for it. Not for depths below the number of sessions (kInvalid).
  Result<ExchangeFigures> carry(const loadgen::DriveLoad& load, const HostSetup& host);

 private:
  FabricPair(const BoxProcessOptions& options, int host_cpu, std::unique_ptr<BoxProcess> box)
      : options_(options), host_cpu_(host_cpu), box_(std::move(box)) {}
  class Run;
  Result<void> fill();
  Result<ExchangeFigures> carry_among_strangers(const loadgen::DriveLoad& load,
                                                const HostSetup& host);

  const BoxProcessOptions options_;
  const int host_cpu_;
  std::unique_ptr<BoxProcess> box_;
};

}  // namespace cairn::bench
