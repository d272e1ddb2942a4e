// SPDX-License-Identifier: Apache-2.0
// The report of `cairn plan ssd`: one HTML page with plots.
#pragma once

#include <string>

#include "model/flash/model.h"
#include "plan/common/latency_summary.h"
#include "plan/flash/flash_history.h"

namespace cairn::plan {

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

}  // namespace cairn::plan
