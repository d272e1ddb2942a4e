// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/perf_report.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/words.h"
#include "server/common/lane_text.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMixed = "mixed:";

Attempt<double> parse_share(std::string_view text) {
  int percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const bool sound = error == std::errc{} && end == text.data() + text.size();
  if (!sound || percent < 0 || percent > 100) {
    return refuse(fmt::format("takes mixed:PERCENT with the share of reads from 0 to 100, not {}",
                              in_quotes(text)));
  }
  return percent / 100.0;
}

double us(uint64_t ns) { return static_cast<double>(ns) / 1000; }

// 1234567 as "1,234,567".
std::string grouped(uint64_t value) {
  std::string digits = fmt::to_string(value);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string shown(uint64_t ns) { return cairn::text(Duration{static_cast<int64_t>(ns)}); }

Json side_json(uint64_t requests, uint64_t bytes, const Histogram& latency_ns) {
  return {{"ios", requests}, {"bytes", bytes}, {"latency_us", latency_json(latency_ns)}};
}

// All I/O queues together, from their beginning; each by itself is what `cairn nvme lanes` shows.
Json lanes_json(const std::vector<std::vector<fabric::HostLane>>& jobs) {
  fabric::LaneTraffic sum;
  uint64_t count = 0;
  for (const std::vector<fabric::HostLane>& job : jobs) {
    for (const fabric::HostLane& lane : job) {
      if (lane.queue_id == 0) continue;
      sum.add(lane.traffic);
      ++count;
    }
  }
  Json json = {{"count", count}};
  json.update(server::json_of(sum));
  return json;
}

std::string failure(const loadgen::LoadResult& result) {
  return fmt::format("{} block {}: {}", result.error_in_write ? "writing" : "reading",
                     result.error_lba.value(), server::error_sentence(*result.error));
}

}  // namespace

Attempt<void> parse_pattern(std::string_view text, loadgen::DriveLoad& load) {
  using Order = loadgen::DriveLoad::Order;
  if (text.starts_with(kMixed)) {
    const Attempt<double> share = parse_share(text.substr(kMixed.size()));
    if (!share) return std::unexpected(share.error());
    load.order = Order::kRandom;
    load.read_share = *share;
    return {};
  }
  struct Pattern {
    std::string_view name;
    Order order;
    double read_share;
  };
  for (const Pattern& each : {Pattern{"randread", Order::kRandom, 1},
                              {"randwrite", Order::kRandom, 0},
                              {"read", Order::kSequential, 1},
                              {"write", Order::kSequential, 0}}) {
    if (each.name != text) continue;
    load.order = each.order;
    load.read_share = each.read_share;
    return {};
  }
  return refuse(
      fmt::format("takes randread, randwrite, read, write or mixed:70, not {}", in_quotes(text)));
}

Json latency_json(const Histogram& latency_ns) {
  if (latency_ns.count() == 0) return nullptr;
  return {{"min", us(latency_ns.min())}, {"mean", latency_ns.mean() / 1000},
          {"p50", us(latency_ns.p50())}, {"p90", us(latency_ns.percentile(0.9))},
          {"p99", us(latency_ns.p99())}, {"p999", us(latency_ns.p999())},
          {"max", us(latency_ns.max())}};
}

std::string latency_text(const Histogram& latency_ns) {
  if (latency_ns.count() == 0) return "none";
  return fmt::format("p50 {}   p90 {}   p99 {}   p99.9 {}   max {}", shown(latency_ns.p50()),
                     shown(latency_ns.percentile(0.9)), shown(latency_ns.p99()),
                     shown(latency_ns.p999()), shown(latency_ns.max()));
}

Json json_of(const PerfReport& report) {
  const loadgen::LoadResult& result = report.result;
  Json json = {{"uri", report.uri},
               {"rw", report.pattern},
               {"bs", report.load.request_size},
               {"depth", report.load.depth},
               {"jobs", report.jobs},
               {"rate", report.load.rate},
               {"seed", report.load.seed},
               {"seconds", result.measured.seconds()},
               {"iops", result.per_second},
               {"bytes_per_second", result.bytes_per_second()},
               {"latency_us", latency_json(result.latency_ns())},
               {"read", side_json(result.reads, result.bytes_read, result.read_latency_ns)},
               {"write", side_json(result.writes, result.bytes_written, result.write_latency_ns)},
               {"unsent", result.unsent},
               {"cpu_us_per_io", report.cpu_us_per_io},
               {"lanes", lanes_json(report.lanes)},
               {"interrupted", report.interrupted},
               {"error", nullptr}};
  if (result.error) json["error"] = failure(result);
  return json;
}

std::string text_of(const PerfReport& report) {
  const loadgen::LoadResult& result = report.result;
  std::string out = fmt::format("{} {}, depth {}, {} job{}, {:.1f} s{}\n", report.pattern,
                                text_bytes(report.load.request_size), report.load.depth,
                                report.jobs, report.jobs == 1 ? "" : "s", result.measured.seconds(),
                                report.interrupted ? " (interrupted)" : "");
  const auto row = [&](std::string_view name, std::string_view value) {
    out += fmt::format("  {:<14}{}\n", name, value);
  };
  row("IOPS", grouped(static_cast<uint64_t>(result.per_second)));
  row("throughput", fmt::format("{:.3f} GB/s", result.bytes_per_second() / 1e9));
  if (result.reads > 0 && result.writes > 0) {
    row("read latency", latency_text(result.read_latency_ns));
    row("write latency", latency_text(result.write_latency_ns));
  } else {
    row("latency", latency_text(result.latency_ns()));
  }
  if (report.cpu_us_per_io > 0) {
    row("processor", fmt::format("{:.2f} us per I/O, this process", report.cpu_us_per_io));
  }
  if (result.unsent > 0) {
    row("behind", fmt::format("{} requests were due and could not be sent: the rate is more than "
                              "the target can do at this depth",
                              grouped(result.unsent)));
  }
  return out;
}

}  // namespace cairn::apps
