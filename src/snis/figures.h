// SPDX-License-Identifier: Apache-2.0
// The figures of the SNIS paper, of any run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/chart.h"
#include "snis/iterations.h"

namespace cairn::snis {

// Figures 4 and 7: distances of mean, median and 90th percentile, and the criterion, by iteration.
report::BarChart convergence_chart(std::string title, std::span<const Step> steps);
// Figure 5: the distribution of throughput in each iteration.
report::LineChart throughput_chart(std::span<const Step> steps);
// Figure 6: PAUSE frames that spines received, and what hosts sent, over time.
report::LineChart pause_chart(const NetworkFacts& network);
report::LineChart rate_chart(const NetworkFacts& network);

// A table with a line for each iteration.
std::vector<std::string> step_heading();
std::vector<std::vector<std::string>> step_rows(std::span<const Step> steps);

// A number of an iteration next to the coupled loop's.
struct Beside {
  std::string name;
  double iterated = 0;
  double coupled = 0;
  double error() const { return coupled == 0 ? 0 : (iterated - coupled) / coupled; }
};
std::vector<Beside> beside(const Metrics& iterated, const Metrics& coupled);

}  // namespace cairn::snis
