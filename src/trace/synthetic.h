// SPDX-License-Identifier: Apache-2.0
// Synthetic: requests drawn from the moments of their sizes and of the times between them, reads
// and writes apart, as the SNIS paper (section IV) makes its traces.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/moments.h"
#include "trace/record.h"

namespace cairn::trace {

struct Stream {
  Moments gap_ns;
  Moments size_bytes;
  uint64_t requests = 5000;
};

struct Synthetic {
  Stream reads;
  Stream writes;
  uint64_t space = 10UL << 30;  // addresses are uniform in it
  uint32_t alignment = 4096;
  uint64_t seed = 1;
};

// What is wrong with it and what to do; nothing when requests can be drawn.
std::optional<std::string> check(const Synthetic& synthetic);

// In order of arrival, of one volume, with neither initiator nor target. Sizes are whole sectors.
// Passed check().
std::vector<Record> draw(const Synthetic& synthetic);

// A row of Table II of the paper.
struct PaperTrace {
  const char* name;
  double read_size_kb;  // thousands of bytes
  double write_size_kb;
  double read_gap_us;
  double write_gap_us;
  double read_gbps;
  double write_gbps;
  int converged_at;  // iteration
};
std::span<const PaperTrace> paper_traces();
// Null when there is none of that name.
const PaperTrace* paper_trace(std::string_view name);
// With the SCVs of the Fujitsu VDI trace that the paper's means come from.
Synthetic synthetic_of(const PaperTrace& trace, uint64_t seed);

}  // namespace cairn::trace
