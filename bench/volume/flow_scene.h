// SPDX-License-Identifier: Apache-2.0
// Clients that share a box of modelled drives, in the simulator: the box serves them over NVMe/TCP,
// an arbiter keeps the pool and its market, and each client is a machine with production code from
// its volume down to its connections. A client may also use drives bare, or a stripe over all of
// them: then no pool is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "loadgen/drive_load.h"
#include "model/flash/parameters.h"
#include "share/auction.h"
#include "volume/types.h"

namespace cairn::bench {

// Which mechanisms a client has.
struct Mechanisms {
  bool notes = true;   // it tells the view of its requests
  bool orders = true;  // it sends them by rank
  bool holds = true;   // it keeps to slices of the auction
};
inline constexpr Mechanisms kAllOff = {.notes = false, .orders = false, .holds = false};

struct FlowClient {
  enum class Kind : uint8_t { kVolume, kDrive, kStripe };
  Kind kind = Kind::kVolume;
  std::string name;
  share::Terms terms = {};       // of a volume, as are the next two
  volume::Weights weights = {};  // of its placement
  Mechanisms mechanisms = {};
  uint64_t bytes = 64_MiB;  // that it uses, all written before
  size_t drive = 0;         // kDrive: which
  loadgen::DriveLoad load;
  // It comes first: its volume lies on the drives that the pool has from the start, and it is at
  // work from before the others make their volumes until they are done. Its warm_up and duration
  // are not looked at.
  bool is_early = false;
};

struct FlowBox {
  std::shared_ptr<const flash::Parameters> flash;  // each drive
  size_t drives = 1;
  size_t early_drives = 0;  // the pool's from the start; 0: all
  uint64_t seed = 1;
};

struct Flow {
  loadgen::LoadResult load;
  Duration filled_in;  // how long its first writes took
  uint64_t sent = 0;   // requests that the steering let go
  uint64_t waited = 0;
  double on_early_drives = 0;  // the part of a volume's extents
};

// All of them until each load is done; in the order of `clients`. The first error of any of them;
// kTimedOut: they did not end in ten minutes of their own time.
Result<std::vector<Flow>> run_flows(const FlowBox& box, const std::vector<FlowClient>& clients);

// What the arbiter is told that a drive of the box reads, and what it does whatever is asked of it.
inline constexpr uint64_t kFlowDriveRate = 125'000'000;
inline constexpr uint64_t kFlowDriveFloor = 60'000'000;

}  // namespace cairn::bench
