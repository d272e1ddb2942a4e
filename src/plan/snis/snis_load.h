// SPDX-License-Identifier: Apache-2.0
// What a simulated system is asked to do: a trace, or requests drawn from moments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "trace/moments.h"
#include "trace/record.h"
#include "trace/shape.h"

namespace cairn::plan {

struct SnisLoadOptions {
  std::string trace;   // a file, or
  std::string format;  // of it
  bool from_zero = true;
  std::string synthetic;  // a row of the paper's Table II, or "custom"
  std::optional<trace::Moments> read_gap_us;
  std::optional<trace::Moments> write_gap_us;
  std::optional<trace::Moments> read_size;
  std::optional<trace::Moments> write_size;
  int requests = 0;  // 0: as many as these two say
  int synthetic_requests = 10'000;
  int trace_requests = 1'000'000;  // at most
  int seed = 1;
  trace::ShapeOptions shape;
};

// A mean, then perhaps its SCV and autocorrelation: "57,8.2". The Problem follows an option's name.
Attempt<trace::Moments> parse_moments(std::string_view text);
// What SnisLoadOptions::synthetic may be.
std::vector<std::string> synthetic_names();
// "volume", "stripe", "stripe:64K": where requests go. "least-loaded", "volume", "round-robin": who
// sends them.
Attempt<void> take_placement(const std::string& text, trace::ShapeOptions& shape);
Attempt<void> take_choice(const std::string& text, trace::Choice& into);

struct SnisLoad {
  std::vector<trace::Record> requests;  // with initiators and targets
  std::string name;                     // as a person would call it
  bool cut = false;                     // the trace has more requests
  uint32_t idle_targets = 0;            // that no request is for
};

// The Problem names the option, or file, line and field.
Attempt<SnisLoad> load_requests(const SnisLoadOptions& options);

// How many requests the whole trace has, whatever `requests` says: reads all of it. `told` hears
// which part of the file was read, 0 to 1. The Problem names file, line and field.
Attempt<uint64_t> count_requests(const SnisLoadOptions& options,
                                 const std::function<void(double)>& told);

}  // namespace cairn::plan
