// SPDX-License-Identifier: Apache-2.0
// One request at a time: where batching can only cost.
#include <fmt/format.h>

#include <cmath>

#include "bench/i10/experiment.h"

namespace cairn::bench::i10 {

namespace {

constexpr std::string_view kKinds[] = {"read4k", "write4k"};
constexpr Batching kBatchings[] = {kOff, kFixed, kAdaptive};
constexpr std::string_view kPolling = "adaptive, polling";

std::string load_name(std::string_view kind) { return fmt::format("depth1_{}", kind); }

class DepthOne final : public Experiment {
 public:
  std::string_view name() const override { return "depth1"; }

  Result<void> enter(Stage& stage) override {
    for (const std::string_view kind : kKinds) {
      loadgen::DriveLoad load = stage.load();
      load.read_share = kind == "read4k" ? 1 : 0;
      load.depth = 1;
      for (const Batching& batching : kBatchings) {
        const Result<void> added =
            stage.add(load_name(kind), batching.name, {.doorbell = batching.doorbell}, load);
        if (!added) return added;
      }
      const Result<void> added = stage.add(load_name(kind), kPolling, {.poll = true}, load);
      if (!added) return added;
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    showing.page().heading("One request at a time");
    showing.page().paragraph("4 KiB at depth 1; both ends sleep while they wait, except polling.");
    std::vector<std::vector<std::string>> rows;
    for (const std::string_view kind : kKinds) {
      const std::string load = load_name(kind);
      report::BarChart chart{.title = kind == "read4k" ? "4 KiB read" : "4 KiB write",
                             .y = {.title = "us"},
                             .groups = {"off", "fixed", "adaptive", "polling"},
                             .series = {}};
      for (const bool is_median : {true, false}) {
        report::BarSeries series{.name = is_median ? "median" : "99th percentile", .values = {}};
        for (const std::string_view variant : {kOff.name, kFixed.name, kAdaptive.name, kPolling}) {
          series.values.push_back(
              contest.median_of(load, variant, is_median ? p50_us : p99_us).value_or(NAN));
        }
        chart.series.push_back(std::move(series));
      }
      showing.chart(fmt::format("i10-depth1-{}", kind), svg(chart), "");
      for (const Batching& batching : {kFixed, kAdaptive}) {
        const auto ratio = contest.ratio({load, batching.name}, {load, kOff.name}, p50_us);
        showing.ratio(fmt::format("{}_p50_{}_vs_off", load, batching.name), ratio);
        rows.push_back({fmt::format("{}, {}", kind, batching.name), cell(ratio),
                        batching.name == kFixed.name ? "1.8 (against RDMA)" : "-"});
      }
    }
    showing.page().table({"median latency, off = 1", "ours", "paper's i10"}, rows);
  }
};

}  // namespace

std::unique_ptr<Experiment> make_depth_one() { return std::make_unique<DepthOne>(); }

}  // namespace cairn::bench::i10
