// SPDX-License-Identifier: Apache-2.0
// How fast the flash model is, in processor time of one core.
#pragma once

#include <functional>
#include <string_view>

#include "bench/report.h"

namespace cairn::bench {

struct FlashSpeedOptions {
  int rounds = 3;
  std::function<void(std::string_view)> progress;
};

// flash_4k_req_per_s, flash_gc_req_per_s and startup_1tb_ms, each also against what the MQSim
// reference needed for the same load on a machine of this kind.
void bench_flash(const FlashSpeedOptions& options, Report& report);

}  // namespace cairn::bench
