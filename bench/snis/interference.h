// SPDX-License-Identifier: Apache-2.0
// Figure 2 of the SNIS paper: how much slower reads and writes are together than alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/report.h"
#include "model/flash/parameters.h"
#include "report/page.h"

namespace cairn::bench::snis_paper {

// One load: reads and writes each come at exponentially distributed times, with exponentially
// distributed sizes, anywhere in 10 GiB.
struct Mixture {
  double gap_us = 0;  // mean, of each direction
  double size = 0;    // mean, bytes
};

// Mean latencies of the same requests, alone and mixed.
struct Slowdown {
  Mixture load;
  double read_alone_us = 0;
  double read_mixed_us = 0;
  double write_alone_us = 0;
  double write_mixed_us = 0;

  double read() const { return read_mixed_us / read_alone_us; }
  double write() const { return write_mixed_us / write_alone_us; }
};

Slowdown measure_slowdown(const flash::Parameters& drive, const Mixture& load,
                          uint64_t requests_each, uint64_t seed);

struct Interference {
  std::vector<Slowdown> by_gap;   // Figure 2 (a)
  std::vector<Slowdown> by_size;  // Figure 2 (b)
};

// On the drive of the paper's Table I as its authors ran it, or as the same hardware would do it.
Interference measure_interference(bool as_the_authors, uint64_t seed);

// Puts a chart where it belongs: its name, the SVG and the caption.
using PutChart = std::function<void(std::string, std::string, const std::string&)>;

// A chart and a table for each part; ratios fig2_read_slowdown_1us and so on.
void show_interference(const Interference& authors, const Interference& hardware, Report& report,
                       report::Page& page, const PutChart& chart);

}  // namespace cairn::bench::snis_paper
