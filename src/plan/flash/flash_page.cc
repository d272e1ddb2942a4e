// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/chart.h"
#include "report/page.h"

namespace cairn::plan {

namespace {

using report::Point;
using report::Series;

constexpr size_t kCdfPoints = 400;
constexpr double kSecond = 1e9;

// The change of a total between two samples, as something to show.
using Rate = std::function<double(const FlashSample& before, const FlashSample& after)>;

double seconds_between(const FlashSample& before, const FlashSample& after) {
  return static_cast<double>(after.at - before.at) / kSecond;
}

double per_second(uint64_t before, uint64_t after, double seconds) {
  return static_cast<double>(after - before) / seconds;
}

class FlashPage {
 public:
  explicit FlashPage(const FlashRun& run)
      : run_(run),
        page_(fmt::format("A modelled drive: {}", run.drive),
              fmt::format("{}. Times are those of the model.", run.load)) {}

  std::string html() {
    show_latency();
    show_throughput();
    show_use();
    show_collection();
    return page_.html();
  }

 private:
  // A curve of a few points is as good to the eye as one of millions.
  static Series latency_curve(std::string name, const LatencyTally& tally) {
    Series series{.name = std::move(name), .points = {}};
    const std::vector<double> values = tally.quantiles(kCdfPoints);
    for (size_t i = 0; i < values.size(); ++i) {
      series.points.push_back(
          {values[i] * 1e-3, static_cast<double>(i + 1) / static_cast<double>(values.size())});
    }
    return series;
  }

  void show_latency() {
    page_.heading("Latency");
    report::LineChart chart{.title = "Share of requests that took at most so long",
                            .x = {.title = "us", .scale = report::Scale::kLogarithmic},
                            .y = {.title = "share", .max = 1.0},
                            .series = {}};
    std::vector<std::vector<std::string>> rows;
    for (const auto& [name, tally] : {std::pair{"reads", &run_.reads}, {"writes", &run_.writes}}) {
      if (tally->count() == 0) continue;
      chart.series.push_back(latency_curve(name, *tally));
      const LatencySummary s = tally->summary();
      std::vector<std::string> row = {name, fmt::format("{}", s.count)};
      for (const double ns : {s.mean, s.p50, s.p90, s.p99, s.p999, s.max}) {
        row.push_back(fmt::format("{:.1f}", ns * 1e-3));
      }
      rows.push_back(std::move(row));
    }
    page_.figure(svg(chart), "From the host's doorbell to its completion");
    page_.table({"us", "requests", "mean", "p50", "p90", "p99", "p99.9", "max"}, rows);
  }

  Series over_time(std::string name, const Rate& rate) const {
    Series series{.name = std::move(name), .points = {}};
    const std::vector<FlashSample>& samples = run_.history.samples();
    for (size_t i = 1; i < samples.size(); ++i) {
      const double middle = static_cast<double>(samples[i - 1].at + samples[i].at) / 2;
      series.points.push_back({middle / kSecond, rate(samples[i - 1], samples[i])});
    }
    return series;
  }
  Series rate_over_time(std::string name, uint64_t FlashSample::* total, double scale) const {
    return over_time(std::move(name), [=](const FlashSample& before, const FlashSample& after) {
      return per_second(before.*total, after.*total, seconds_between(before, after)) * scale;
    });
  }
  // Of `parts` alike, how many percent of the time each was busy.
  Series use_over_time(std::string name, flash::Nanos FlashSample::* busy, uint32_t parts) const {
    return over_time(std::move(name), [=](const FlashSample& before, const FlashSample& after) {
      const auto time = static_cast<double>(after.at - before.at) * parts;
      return std::min(100.0, static_cast<double>(after.*busy - before.*busy) / time * 100);
    });
  }
  static report::LineChart time_chart(std::string title, std::string y,
                                      std::vector<Series> series) {
    return {.title = std::move(title),
            .x = {.title = "time (s)"},
            .y = {.title = std::move(y)},
            .series = std::move(series)};
  }

  void show_throughput() {
    page_.heading("Throughput");
    page_.figure(svg(time_chart("Completed", "MB/s",
                                {rate_over_time("read", &FlashSample::read_bytes, 1e-6),
                                 rate_over_time("written", &FlashSample::written_bytes, 1e-6)})),
                 "");
  }

  void show_use() {
    const flash::Geometry& geometry = run_.model.geometry();
    page_.heading("Channels and dies");
    report::LineChart chart =
        time_chart("Busy", "percent",
                   {use_over_time("channels", &FlashSample::channels_busy, geometry.channels()),
                    use_over_time("dies", &FlashSample::dies_busy, geometry.dies())});
    chart.y.max = 100;
    page_.figure(svg(chart), "Mean of all channels, and of all dies");

    const auto span = static_cast<double>(std::max<flash::Nanos>(run_.model.now(), 1));
    report::BarChart bars{
        .title = "Busy, by channel",
        .y = {.title = "percent", .max = 100.0},
        .groups = {},
        .series = {{.name = "bus", .values = {}}, {.name = "dies", .values = {}}}};
    std::vector<double> dies(geometry.channels(), 0);
    const double dies_per_channel = double(geometry.dies()) / geometry.channels();
    for (uint32_t die = 0; die < geometry.dies(); ++die) {
      dies[geometry.channel_of_chip(geometry.chip_of_die(die))] +=
          static_cast<double>(run_.model.die_busy(die)) / span / dies_per_channel * 100;
    }
    for (uint32_t channel = 0; channel < geometry.channels(); ++channel) {
      bars.groups.push_back(fmt::format("{}", channel));
      bars.series[0].values.push_back(static_cast<double>(run_.model.channel_busy(channel)) / span *
                                      100);
    }
    bars.series[1].values = std::move(dies);
    page_.figure(svg(bars), "Over the whole run; dies: mean of those on the channel");
  }

  void show_collection() {
    const flash::Counters& k = run_.model.counters();
    page_.heading("Garbage collection");
    page_.figure(svg(time_chart("Pages programmed", "pages/s",
                                {rate_over_time("user", &FlashSample::user_pages, 1),
                                 rate_over_time("collector", &FlashSample::collector_pages, 1),
                                 rate_over_time("mapping", &FlashSample::mapping_pages, 1)})),
                 "By who asked");
    page_.figure(svg(time_chart("Blocks erased", "blocks/s",
                                {rate_over_time("erased", &FlashSample::blocks_erased, 1)})),
                 "");
    page_.paragraph(fmt::format(
        "Write amplification {:.3f}: flash pages programmed for each that the user's data filled. "
        "{} collections moved {} pages; wear levelling moved {} blocks.",
        k.write_amplification(), k.gc_executions, k.gc_page_moves, k.wear_executions));
    const auto row = [](const char* who, uint64_t read, uint64_t programmed) {
      return std::vector<std::string>{who, fmt::format("{}", read), fmt::format("{}", programmed)};
    };
    page_.table({"flash pages", "read", "programmed"},
                {row("user", k.user_pages_read, k.user_pages_programmed),
                 row("collector", k.gc_pages_read, k.gc_pages_programmed),
                 row("mapping", k.mapping_pages_read, k.mapping_pages_programmed)});
  }

  const FlashRun& run_;
  report::Page page_;
};

}  // namespace

std::string flash_page(const FlashRun& run) { return FlashPage(run).html(); }

}  // namespace cairn::plan
