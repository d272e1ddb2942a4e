// SPDX-License-Identifier: Apache-2.0
// The iteration of storage and network against one run with MQSim and HPCC's ns-3.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "plan/common/comparison.h"

namespace cairn::plan {

// True of a table of iterations, or of a folder with one as convergence.csv.
bool is_snis_reference(const std::string& path);

// Runs each trace of the table (NAME_trace.csv or .csv.gz beside it) for as many iterations as the
// table has, with the drive and network of the reference. The Problem names file and trace.
Attempt<std::vector<Comparison>> check_snis_file(const std::string& path);

}  // namespace cairn::plan
