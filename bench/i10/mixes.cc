// SPDX-License-Identifier: Apache-2.0
// Figure 8: reads among writes.
#include <fmt/format.h>

#include <cmath>

#include "bench/i10/experiment.h"

namespace cairn::bench::i10 {

namespace {

constexpr int kReadPercents[] = {0, 25, 50, 75, 100};
constexpr Batching kBatchings[] = {kOff, kFixed, kAdaptive};

std::string load_name(int percent) { return fmt::format("mix_read{}", percent); }

// Cores needed for the same throughput, NVMe-TCP against i10 (Figure 7): 10 and 4 for reads, 6 and
// 3 for writes. The paper gives no number for the mixes between.
std::optional<double> of_paper(int percent) {
  if (percent == 100) return 2.5;
  if (percent == 0) return 2.0;
  return std::nullopt;
}

class Mixes final : public Experiment {
 public:
  std::string_view name() const override { return "mixes"; }

  Result<void> enter(Stage& stage) override {
    for (const int percent : kReadPercents) {
      loadgen::DriveLoad load = stage.load();
      load.read_share = percent / 100.0;
      for (const Batching& batching : kBatchings) {
        const Result<void> added =
            stage.add(load_name(percent), batching.name, {.doorbell = batching.doorbell}, load);
        if (!added) return added;
      }
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    showing.page().heading("Reads among writes (Figure 8)");
    showing.page().paragraph(
        "4 KiB at depth 128. The right plot divides by what host and box spent: I/Os for each "
        "CPU-second of both together.");
    report::LineChart rate{
        .title = "Throughput", .x = {.title = "reads (%)"}, .y = {.title = "IO/s"}, .series = {}};
    report::LineChart cost = rate;
    cost.title = "I/Os per CPU-second of host and box";
    cost.y.title = "";
    for (const Batching& batching : kBatchings) {
      report::Series rates{.name = std::string(batching.name), .points = {}};
      report::Series costs = rates;
      for (const int percent : kReadPercents) {
        const std::string load = load_name(percent);
        const auto rate_here = contest.median_of(load, batching.name, per_second);
        const auto cost_here = contest.median_of(load, batching.name, per_cpu_second);
        rates.points.push_back({static_cast<double>(percent), rate_here.value_or(NAN)});
        costs.points.push_back({static_cast<double>(percent), cost_here.value_or(NAN)});
      }
      rate.series.push_back(std::move(rates));
      cost.series.push_back(std::move(costs));
    }
    showing.chart("i10-mixes", svg(rate), "");
    showing.chart("i10-mixes-cpu", svg(cost), "");
    std::vector<std::vector<std::string>> rows;
    for (const int percent : kReadPercents) {
      const std::string load = load_name(percent);
      const auto ratio = contest.ratio({load, kAdaptive.name}, {load, kOff.name}, per_cpu_second);
      showing.ratio(load + "_per_cpu_vs_off", ratio);
      showing.ratio(load + "_vs_off",
                    contest.ratio({load, kAdaptive.name}, {load, kOff.name}, per_second));
      rows.push_back({fmt::format("{}% reads", percent), cell(ratio), cell(of_paper(percent))});
    }
    showing.page().table({"I/Os per CPU-second, off = 1", "adaptive", "paper's i10"}, rows);
    showing.page().paragraph(
        "What differs: the paper counts the host's cores until an SSD is saturated, and its "
        "baseline is the kernel's NVMe/TCP; ours counts both ends, and the baseline is the same "
        "program with batching off.");
  }
};

}  // namespace

std::unique_ptr<Experiment> make_mixes() { return std::make_unique<Mixes>(); }

}  // namespace cairn::bench::i10
