// SPDX-License-Identifier: Apache-2.0
// What comes of a paper's evaluation: numbers, a page and its charts.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"

namespace cairn::bench {

struct PaperChart {
  std::string name;  // of a file, without its ending
  std::string svg;
};

struct Paper {
  Report report;
  std::string html;                // one page that needs nothing else
  std::vector<PaperChart> charts;  // those of the page, each alone
};

}  // namespace cairn::bench
