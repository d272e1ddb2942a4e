// SPDX-License-Identifier: Apache-2.0
#include "snis/figures.h"

#include <fmt/format.h>

namespace cairn::snis {

namespace {

constexpr size_t kCurvesMax = 12;  // more cannot be told apart
constexpr double kPicosPerMilli = 1e9;

std::string percent(double share) { return fmt::format("{:.3f}", share * 100); }
std::string us(double ns) { return fmt::format("{:.2f}", ns * 1e-3); }

report::Series over_time(std::string name, const NetworkFacts& network,
                         const std::vector<uint64_t>& bins, double scale) {
  report::Series series{.name = std::move(name), .points = {}};
  for (size_t i = 0; i < bins.size(); ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * static_cast<double>(network.bin);
    series.points.push_back({middle / kPicosPerMilli, static_cast<double>(bins[i]) * scale});
  }
  return series;
}

}  // namespace

report::BarChart convergence_chart(std::string title, std::span<const Step> steps) {
  report::BarChart chart{.title = std::move(title),
                         .y = {.title = "relative distance (percent)"},
                         .groups = {},
                         .series = {{.name = "mean", .values = {}},
                                    {.name = "median", .values = {}},
                                    {.name = "90th", .values = {}},
                                    {.name = "Conv_C", .values = {}}}};
  for (const Step& step : steps) {
    if (!step.distance) continue;
    const Distance& d = *step.distance;
    chart.groups.push_back(fmt::format("{}", step.number));
    size_t series = 0;
    for (const double share : {d.mean, d.median, d.p90, d.criterion}) {
      chart.series[series++].values.push_back(share * 100);
    }
  }
  return chart;
}

report::LineChart throughput_chart(std::span<const Step> steps) {
  report::LineChart chart{.title = "Share of requests with at most so much throughput",
                          .x = {.title = "Gb/s", .scale = report::Scale::kLogarithmic},
                          .y = {.title = "share", .max = 1.0},
                          .series = {}};
  const size_t first = steps.size() > kCurvesMax ? steps.size() - kCurvesMax : 0;
  for (const Step& step : steps.subspan(first)) {
    report::Series series{.name = fmt::format("iteration {}", step.number), .points = {}};
    const size_t points = step.throughput_quantiles.size();
    for (size_t i = 0; i < points; ++i) {
      series.points.push_back(
          {step.throughput_quantiles[i], static_cast<double>(i + 1) / static_cast<double>(points)});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

report::LineChart pause_chart(const NetworkFacts& network) {
  return {.title = "PAUSE frames at spines",
          .x = {.title = "time (ms)"},
          .y = {.title = "frames per bin"},
          .series = {over_time("PAUSE", network, network.spine_pauses, 1)}};
}

report::LineChart rate_chart(const NetworkFacts& network) {
  const double gbps = network.bin > 0 ? 8000.0 / static_cast<double>(network.bin) : 0;
  return {.title = "Sending rate",
          .x = {.title = "time (ms)"},
          .y = {.title = "Gb/s"},
          .series = {over_time("by targets (reads)", network, network.read_bytes, gbps),
                     over_time("by initiators (writes)", network, network.write_bytes, gbps)}};
}

std::vector<std::string> step_heading() {
  return {"iteration",
          "mean Gb/s",
          "median",
          "90th",
          "RD mean %",
          "RD median %",
          "RD 90th %",
          "Conv_C %",
          "moved writes",
          "by mean ns",
          "read storage us",
          "write storage us",
          "read network us",
          "write network us",
          "PAUSE"};
}

std::vector<std::vector<std::string>> step_rows(std::span<const Step> steps) {
  std::vector<std::vector<std::string>> rows;
  for (const Step& step : steps) {
    const Distribution& g = step.metrics.throughput_gbps;
    std::vector<std::string> row = {fmt::format("{}", step.number), fmt::format("{:.5f}", g.mean),
                                    fmt::format("{:.5f}", g.p50), fmt::format("{:.5f}", g.p90)};
    if (step.distance && step.movement) {
      const Distance& d = *step.distance;
      for (const double share : {d.mean, d.median, d.p90, d.criterion}) {
        row.push_back(percent(share));
      }
      row.push_back(fmt::format("{}", step.movement->moved));
      row.push_back(fmt::format("{:.1f}", step.movement->mean_abs_ns));
    } else {
      row.insert(row.end(), 6, "-");
    }
    const Metrics& m = step.metrics;
    for (const double mean :
         {m.read.storage.mean, m.write.storage.mean, m.read.network.mean, m.write.network.mean}) {
      row.push_back(us(mean));
    }
    row.push_back(
        fmt::format("{}", step.network.pauses_at_hosts + step.network.pauses_at_switches));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Beside> beside(const Metrics& i, const Metrics& c) {
  return {
      {"throughput mean (Gb/s)", i.throughput_gbps.mean, c.throughput_gbps.mean},
      {"throughput median", i.throughput_gbps.p50, c.throughput_gbps.p50},
      {"throughput 90th", i.throughput_gbps.p90, c.throughput_gbps.p90},
      {"read storage mean (us)", i.read.storage.mean / 1e3, c.read.storage.mean / 1e3},
      {"write storage mean (us)", i.write.storage.mean / 1e3, c.write.storage.mean / 1e3},
      {"read network mean (us)", i.read.network.mean / 1e3, c.read.network.mean / 1e3},
      {"write network mean (us)", i.write.network.mean / 1e3, c.write.network.mean / 1e3},
      {"read p99 (us)", i.read.total.p99 / 1e3, c.read.total.p99 / 1e3},
      {"write p99 (us)", i.write.total.p99 / 1e3, c.write.total.p99 / 1e3},
      {"read p99.9 (us)", i.read.total.p999 / 1e3, c.read.total.p999 / 1e3},
      {"write p99.9 (us)", i.write.total.p999 / 1e3, c.write.total.p999 / 1e3},
  };
}

}  // namespace cairn::snis
