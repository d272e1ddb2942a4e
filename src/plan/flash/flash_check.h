// SPDX-License-Identifier: Apache-2.0
// The flash model against the numbers of the MQSim reference.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "plan/common/comparison.h"

namespace cairn::plan {

struct FlashCheckOptions {
  // Where configs.json, workloads_b_c.json and traces/ are looked for when they are not beside the
  // file itself.
  std::string reference_folder;
  // Overrides the configuration that the name of an open-loop or per-request file says.
  std::string config;
  // Of drawn workloads; another one gives other loads, which need not be within the tolerances. 0:
  // that of the workload files which the reference ships, with which its tables were made.
  uint32_t seed = 0;
};

// Runs everything a file describes: micro cases (JSON), open-loop, closed-loop and garbage
// collection tables, per-request completions (CSV, plain or gzip). The Problem names the file.
Attempt<std::vector<Comparison>> check_flash_file(const std::string& path,
                                                  const FlashCheckOptions& options);

}  // namespace cairn::plan
