// SPDX-License-Identifier: Apache-2.0
// What fio measured on a real drive: a point is one load that kept a number of requests in flight,
// and the latency and throughput it had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "model/flash/workload.h"

namespace cairn::plan {

// Reads, or writes, of a load.
struct LoadSide {
  double iops = 0;
  double mean_ns = 0;
  double p99_ns = 0;  // 0: not known
};

struct FioPoint {
  std::string job;
  flash::Pattern pattern = flash::Pattern::kRandom;
  double read_fraction = 1;
  uint32_t block_bytes = 4096;
  uint32_t depth = 1;  // of all clones together
  // How much of the drive was used: bytes, or a part when there are none.
  uint64_t size_bytes = 0;
  double size_part = 1;
  std::optional<LoadSide> read;   // there when the load reads
  std::optional<LoadSide> write;  // there when it writes

  bool is_sequential() const { return pattern == flash::Pattern::kSequential; }
};

struct FioPoints {
  std::vector<FioPoint> points;     // at least one
  std::vector<std::string> doubts;  // sentences on what may make a point useless
};

// The output of `fio --output-format=json` (or json+), version 3 or newer. Lines that fio prints
// before the JSON are skipped. Clones of a job are one point. The Problem names job and key: what
// cannot be one closed loop of equal requests is refused, not approximated.
Attempt<FioPoints> parse_fio(std::string_view text);

// "randread 4 KiB x 32": the load in words.
std::string load_text(const FioPoint& point);

}  // namespace cairn::plan
