// SPDX-License-Identifier: Apache-2.0
// The network model against the numbers of the HPCC reference.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "plan/common/comparison.h"

namespace cairn::plan {

struct NetCheckOptions {
  // What the flows of a run are drawn from when the reference does not list them.
  uint32_t seed = 1;
};

// True of a table of network runs, or of a folder with one: then check_net_file() is for it.
bool is_net_reference(const std::string& path);

// Runs everything that runs.csv describes (the file, or the folder with it). A run whose flows are
// listed has to come out to the nanosecond: they are in NAME.json or NAME.json.gz beside it
// (net_listing.h), or in fct_per_flow.json, and its configuration then in configs.json. A run whose
// flows are listed nowhere is drawn to its description, so only what hardly depends on the draw is
// judged. The Problem names file and run.
Attempt<std::vector<Comparison>> check_net_file(const std::string& path,
                                                const NetCheckOptions& options);

}  // namespace cairn::plan
