// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/build_info.h"

namespace cairn::bench {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Measurement& measurement) {
  Json json = {{"name", measurement.name}};
  if (!measurement.variant.empty()) json["variant"] = measurement.variant;
  json["unit"] = measurement.unit;
  if (measurement.is_simulated) json["simulated"] = true;
  json["value"] = measurement.value();
  json["samples"] = measurement.samples;
  for (const auto& [name, value] : measurement.extras) json[name] = value;
  return json;
}

// A number and its unit as a person would write it: "12.3 GiB/s", "84.1 k/s".
std::string text_of(double value, std::string_view unit) {
  if (unit == "bytes/s") return text_bytes(static_cast<uint64_t>(value)) + "/s";
  if (value >= 1e9) return fmt::format("{:.2f} G {}", value / 1e9, unit);
  if (value >= 1e6) return fmt::format("{:.2f} M {}", value / 1e6, unit);
  if (value >= 1e4) return fmt::format("{:.1f} k {}", value / 1e3, unit);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string extras_of(const Measurement& measurement) {
  std::string out = measurement.is_simulated ? "simulated" : "";
  for (const auto& [name, value] : measurement.extras) {
    out += fmt::format("{}{} {:.4g}", out.empty() ? "" : "  ", name, value);
  }
  return out;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double paired_ratio(const Measurement& one, const Measurement& other) {
  std::vector<double> ratios;
  for (size_t i = 0; i < one.samples.size(); ++i) {
    if (other.samples[i] > 0) ratios.push_back(one.samples[i] / other.samples[i]);
  }
  return median(ratios);
}

void Measurement::add_latency(const Histogram& latency_ns) {
  extras.emplace_back("p50_us", static_cast<double>(latency_ns.p50()) / 1e3);
  extras.emplace_back("p99_us", static_cast<double>(latency_ns.p99()) / 1e3);
  extras.emplace_back("p999_us", static_cast<double>(latency_ns.p999()) / 1e3);
}

Machine this_machine() {
  Machine machine;
  utsname names = {};
  if (::uname(&names) == 0) {
    machine.kernel = names.release;
    machine.architecture = names.machine;
  }
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; machine.cpu.empty() && std::getline(info, line);) {
    if (line.starts_with("model name")) machine.cpu = line.substr(line.find(':') + 2);
  }
  machine.cpus_online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return machine;
}

const Measurement* Report::find(std::string_view name, std::string_view variant) const {
  const auto found = std::ranges::find_if(results_, [&](const Measurement& measurement) {
    return measurement.name == name && measurement.variant == variant;
  });
  return found == results_.end() ? nullptr : &*found;
}

Json Report::json() const {
  const Machine machine = this_machine();
  Json results = Json::array();
  for (const Measurement& measurement : results_) results.push_back(json_of(measurement));
  Json json = {{"schema_version", kReportSchemaVersion},
               {"benchmark", benchmark_},
               {"version", report::build_info().version},
               {"commit", report::build_info().commit},
               {"build_type", report::build_info().build_type},
               {"machine",
                {{"kernel", machine.kernel},
                 {"architecture", machine.architecture},
                 {"cpu", machine.cpu},
                 {"cpus_online", machine.cpus_online},
                 {"memory_bytes", machine.memory_bytes}}},
               {"results", std::move(results)},
               {"ratios", Json::object()},
               {"simulated_ratios", simulated_ratios_},
               {"skipped", Json::object()}};
  for (const auto& [name, value] : ratios_) json["ratios"][name] = value;
  for (const auto& [variant, why] : skipped_) json["skipped"][variant] = why;
  return json;
}

std::string Report::table() const {
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths(3, 0);
  for (const Measurement& measurement : results_) {
    rows.push_back({measurement.name, measurement.variant,
                    text_of(measurement.value(), measurement.unit), extras_of(measurement)});
    for (size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], rows.back()[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:>{}}  {}", row[0], widths[0], row[1],
                                   widths[1], row[2], widths[2], row[3]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  for (const auto& [name, value] : ratios_) {
    out += fmt::format("{} {:.3f}{}\n", name, value,
                       simulated_ratios_.contains(name) ? " simulated" : "");
  }
  for (const auto& [variant, why] : skipped_) out += fmt::format("{} skipped: {}\n", variant, why);
  return out;
}

}  // namespace cairn::bench
