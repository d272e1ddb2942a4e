// SPDX-License-Identifier: Apache-2.0
// Report: what a benchmark found, as one JSON object or a table.
//
//   {"schema_version": 1, "benchmark": "runtime", "commit": "...", "machine": {...},
//    "results": [{"name": "stream", "variant": "uring", "unit": "bytes/s", "value": ...,
//                 "samples": [...], "p50_us": ...}, ...],
//    "ratios": {"uring_stream_vs_raw": 1.02}, "simulated_ratios": [], "skipped": {"uring": "why"}}
//
// What a model computed instead of a clock is marked: such a result has "simulated": true, such a
// ratio is named in simulated_ratios, and both say so in the table.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace cairn::bench {

inline constexpr int kReportSchemaVersion = 1;

// The middle value; the mean of the two middle ones when their number is even; 0 of none.
double median(std::vector<double> values);

struct Measurement {
  std::string name;             // what was done: "stream"
  std::string variant;          // through what: "uring"; empty where there is one way only
  std::string unit;             // "bytes/s", "ns"
  std::vector<double> samples;  // one per round; the value is their median
  std::vector<std::pair<std::string, double>> extras = {};  // "p99_us", "cpu_us_per_operation"
  bool is_simulated = false;                                // by a model, in virtual time

  double value() const { return median(samples); }
  // Adds p50_us, p99_us and p999_us of latencies in nanoseconds.
  void add_latency(const Histogram& latency_ns);
};

// The ratio of two contestants measured in the same rounds: the median of their ratios round by
// round. Neighbours in a round share its noise, which the ratio of their medians would keep.
double paired_ratio(const Measurement& one, const Measurement& other);

struct Machine {
  std::string kernel;
  std::string architecture;
  std::string cpu;
  int cpus_online = 0;
  uint64_t memory_bytes = 0;
};
Machine this_machine();

class Report {
 public:
  // `benchmark` is the name after `cairn bench`.
  explicit Report(std::string benchmark) : benchmark_(std::move(benchmark)) {}

  void add(Measurement measurement) { results_.push_back(std::move(measurement)); }
  void add_ratio(const std::string& name, double value) { ratios_[name] = value; }
  // Of figures that a model computed.
  void add_simulated_ratio(const std::string& name, double value) {
    add_ratio(name, value);
    simulated_ratios_.insert(name);
  }
  // Something could not be measured here; `why` is a sentence.
  void skip(const std::string& variant, const std::string& why) { skipped_[variant] = why; }

  // Null when there is no such measurement.
  const Measurement* find(std::string_view name, std::string_view variant) const;

  nlohmann::ordered_json json() const;
  std::string table() const;

 private:
  std::string benchmark_;
  std::vector<Measurement> results_;
  std::map<std::string, double> ratios_;
  std::set<std::string> simulated_ratios_;  // of ratios_
  std::map<std::string, std::string> skipped_;
};

}  // namespace cairn::bench
