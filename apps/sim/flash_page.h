// SPDX-License-Identifier: Apache-2.0
// The report of `cairn sim ssd`: one HTML page with plots.
#pragma once

#include <string>

#include "apps/sim/flash_history.h"
#include "apps/sim/latency_summary.h"
#include "model/flash/model.h"

namespace cairn::apps {

struct FlashRun {
  std::string drive;  // what the user called it
  std::string load;
  const LatencyTally& reads;
  const LatencyTally& writes;
  const FlashHistory& history;
  const flash::FlashModel& model;
};

// Latency, throughput over time, use of channels and dies, garbage collection.
std::string flash_page(const FlashRun& run);

}  // namespace cairn::apps
