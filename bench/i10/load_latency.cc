// SPDX-License-Identifier: Apache-2.0
// Latency at a given load (Figure 6), and what the doorbell does to it.
#include <fmt/format.h>

#include <cmath>

#include "bench/i10/experiment.h"

namespace cairn::bench::i10 {

namespace {

constexpr int kRatesK[] = {2, 5, 10, 20, 40, 60, 80, 120, 160, 240, 320, 400, 480};
constexpr Batching kBatchings[] = {kOff, kFixed, kAdaptive};
constexpr uint32_t kDepthMax = 512;  // beyond which the drive cannot keep up for long
constexpr double kKept = 0.97;

std::string load_name(int rate_k) { return fmt::format("load_{}k", rate_k); }

bool kept_rate(const Contest& contest, int rate_k, std::string_view variant) {
  const auto rate = contest.median_of(load_name(rate_k), variant, per_second);
  return rate && *rate >= kKept * rate_k * 1000;
}

class LoadLatency final : public Experiment {
 public:
  std::string_view name() const override { return "load"; }

  Result<void> enter(Stage& stage) override {
    for (const int rate_k : kRatesK) {
      loadgen::DriveLoad load = stage.load();
      load.rate = rate_k * 1000.0;
      load.depth = kDepthMax;
      for (const Batching& batching : kBatchings) {
        const Result<void> added =
            stage.add(load_name(rate_k), batching.name, {.doorbell = batching.doorbell}, load);
        if (!added) return added;
      }
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    showing.page().heading("Latency and load (Figure 6)");
    showing.page().paragraph(
        "4 KiB random reads, due at even distances whatever the box does; latency counts from "
        "when a read was due. Both ends sleep when they have nothing to do. A curve ends "
        "before the first load that was not kept.");
    showing.chart("i10-load-p50", svg(plot("Median latency", p50_us, contest)), "");
    showing.chart("i10-load-p99", svg(plot("99th percentile", p99_us, contest)), "");
    showing.chart("i10-load-cores", svg(cores(contest)), "Host and box together");
    std::vector<std::vector<std::string>> rows;
    for (const int rate_k : kRatesK) {
      if (!kept_rate(contest, rate_k, kOff.name)) break;
      const std::string load = load_name(rate_k);
      std::vector<std::string> row = {fmt::format("{},000 IO/s", rate_k)};
      for (const Batching& batching : {kFixed, kAdaptive}) {
        std::optional<double> ratio;
        if (kept_rate(contest, rate_k, batching.name)) {
          ratio = contest.ratio({load, batching.name}, {load, kOff.name}, p50_us);
        }
        showing.ratio(fmt::format("{}_p50_{}_vs_off", load, batching.name), ratio);
        row.push_back(cell(ratio));
      }
      rows.push_back(std::move(row));
    }
    std::string kept = "The highest load that was kept, of those tried:";
    for (const Batching& batching : kBatchings) {
      const std::optional<double> rate = highest(contest, batching.name);
      showing.ratio(fmt::format("load_kept_{}", batching.name), rate);
      kept += fmt::format(" {} {} IO/s{}", batching.name, rate ? report::short_text(*rate) : "no",
                          batching.name == kAdaptive.name ? "." : ",");
    }
    showing.page().paragraph(kept);
    showing.page().table({"median latency, off = 1", "fixed", "adaptive"}, rows);
    showing.page().paragraph(
        "In the paper, i10 at low load waits for its timer: 189 us on average where "
        "NVMe-over-RDMA takes 105 (1.8 times), and 1.7 times at the 99th percentile. Fixed is "
        "that design; it waits at both ends. Adaptive never waits while fewer than eight "
        "requests are on their way.");
    showing.page().paragraph(
        "What differs: the paper's load is a closed loop of growing depth on an SSD; ours is an "
        "open loop on memory, so what is seen is the stack alone, and mostly the time a sleeping "
        "core takes to wake.");
  }

 private:
  static report::LineChart frame(std::string title, std::string y) {
    return {.title = std::move(title),
            .x = {.title = "load (IO/s)", .scale = report::Scale::kLogarithmic},
            .y = {.title = std::move(y), .scale = report::Scale::kLogarithmic},
            .series = {}};
  }
  static report::LineChart plot(std::string title, const Contest::Value& value,
                                const Contest& contest) {
    report::LineChart chart = frame(std::move(title), "us");
    fill(chart, value, contest);
    return chart;
  }
  static report::LineChart cores(const Contest& contest) {
    report::LineChart chart = frame("Processors busy", "cores");
    chart.y.scale = report::Scale::kLinear;
    fill(chart, [](const ExchangeFigures& each) { return each.cores(); }, contest);
    return chart;
  }
  static void fill(report::LineChart& chart, const Contest::Value& value, const Contest& contest) {
    for (const Batching& batching : kBatchings) {
      report::Series series{.name = std::string(batching.name), .points = {}};
      for (const int rate_k : kRatesK) {
        if (!kept_rate(contest, rate_k, batching.name)) break;
        const auto here = contest.median_of(load_name(rate_k), batching.name, value);
        series.points.push_back({rate_k * 1000.0, here.value_or(NAN)});
      }
      chart.series.push_back(std::move(series));
    }
  }
  // In I/Os per second.
  static std::optional<double> highest(const Contest& contest, std::string_view variant) {
    std::optional<double> rate;
    for (const int rate_k : kRatesK) {
      if (!kept_rate(contest, rate_k, variant)) break;
      rate = rate_k * 1000.0;
    }
    return rate;
  }
};

}  // namespace

std::unique_ptr<Experiment> make_load_latency() { return std::make_unique<LoadLatency>(); }

}  // namespace cairn::bench::i10
