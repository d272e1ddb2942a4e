// SPDX-License-Identifier: Apache-2.0
// Request sizes, 512 bytes to 128 KiB.
#include <fmt/format.h>

#include <cmath>

#include "bench/i10/experiment.h"

namespace cairn::bench::i10 {

namespace {

constexpr uint64_t kSizes[] = {512, 1_KiB, 2_KiB, 4_KiB, 8_KiB, 16_KiB, 32_KiB, 64_KiB, 128_KiB};
constexpr Batching kBatchings[] = {kOff, kAdaptive};

std::string size_text(uint64_t size) {
  return size < 1_KiB ? fmt::format("{}", size) : fmt::format("{}K", size / 1_KiB);
}
std::string load_name(uint64_t size) { return fmt::format("size_{}", size_text(size)); }

std::vector<report::Tick> ticks() {
  std::vector<report::Tick> all;
  for (const uint64_t size : kSizes) all.push_back({static_cast<double>(size), size_text(size)});
  return all;
}

class Sizes final : public Experiment {
 public:
  std::string_view name() const override { return "sizes"; }

  Result<void> enter(Stage& stage) override {
    for (const uint64_t size : kSizes) {
      loadgen::DriveLoad load = stage.load();
      load.request_size = size;
      for (const Batching& batching : kBatchings) {
        const Result<void> added =
            stage.add(load_name(size), batching.name,
                      {.doorbell = batching.doorbell, .block_size = 512}, load);
        if (!added) return added;
      }
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    showing.page().heading("Request sizes");
    showing.page().paragraph(
        "Random reads at depth 128, on a drive with blocks of 512 bytes. Large requests fill a "
        "send by themselves, so batching has less to give.");
    const report::Axis x{
        .title = "request (bytes)", .scale = report::Scale::kLogarithmic, .ticks = ticks()};
    report::LineChart rate{.title = "Requests", .x = x, .y = {.title = "IO/s"}, .series = {}};
    report::LineChart bytes{.title = "Data", .x = x, .y = {.title = "GB/s"}, .series = {}};
    for (const Batching& batching : kBatchings) {
      report::Series rates{.name = std::string(batching.name), .points = {}};
      report::Series volumes = rates;
      for (const uint64_t size : kSizes) {
        const double each =
            contest.median_of(load_name(size), batching.name, per_second).value_or(NAN);
        const auto at = static_cast<double>(size);
        rates.points.push_back({at, each});
        volumes.points.push_back({at, each * at / 1e9});
      }
      rate.series.push_back(std::move(rates));
      bytes.series.push_back(std::move(volumes));
    }
    showing.chart("i10-sizes", svg(rate), "");
    showing.chart("i10-sizes-bytes", svg(bytes), "");
    std::vector<std::vector<std::string>> rows;
    for (const uint64_t size : kSizes) {
      const std::string load = load_name(size);
      const auto rates = contest.ratio({load, kAdaptive.name}, {load, kOff.name}, per_second);
      const auto cpu = contest.ratio({load, kAdaptive.name}, {load, kOff.name}, per_cpu_second);
      showing.ratio(load + "_vs_off", rates);
      showing.ratio(load + "_per_cpu_vs_off", cpu);
      rows.push_back({size_text(size), cell(rates), cell(cpu)});
    }
    showing.page().table({"adaptive, off = 1", "IO/s", "per CPU-second"}, rows);
    showing.page().paragraph(
        "The paper has this figure in its technical report only, so there is no ratio of its own "
        "to put next to ours.");
  }
};

}  // namespace

std::unique_ptr<Experiment> make_sizes() { return std::make_unique<Sizes>(); }

}  // namespace cairn::bench::i10
