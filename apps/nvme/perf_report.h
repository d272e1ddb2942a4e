// SPDX-License-Identifier: Apache-2.0
// What `cairn nvme perf` was asked for and what it prints.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "base/problem.h"
#include "fabric/host/lane.h"
#include "loadgen/drive_load.h"

namespace cairn::apps {

// "randread", "randwrite", "read", "write", or "mixed:70": random, 70 of 100 reads.
Attempt<void> parse_pattern(std::string_view text, loadgen::DriveLoad& load);

struct PerfReport {
  std::string uri;
  std::string pattern;  // as typed
  uint32_t jobs = 1;
  loadgen::DriveLoad load;
  loadgen::LoadResult result;
  double cpu_us_per_io = 0;                          // of this process; 0: nothing was measured
  std::vector<std::vector<fabric::HostLane>> lanes;  // of each job, when its time was over
  bool interrupted = false;
};

nlohmann::ordered_json json_of(const PerfReport& report);
std::string text_of(const PerfReport& report);

// Both are shared with others that print latencies.
nlohmann::ordered_json latency_json(const Histogram& latency_ns);
std::string latency_text(const Histogram& latency_ns);

}  // namespace cairn::apps
