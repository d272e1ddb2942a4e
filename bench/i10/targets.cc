// SPDX-License-Identifier: Apache-2.0
// Figure 9: many targets from one core.
#include <fmt/format.h>

#include <cmath>

#include "bench/i10/experiment.h"

namespace cairn::bench::i10 {

namespace {

constexpr uint32_t kCounts[] = {1, 2, 4, 8, 16, 24, 48};
constexpr uint32_t kDepth = 768;  // of all targets together: 16 for each of 48
constexpr Batching kBatchings[] = {kOff, kAdaptive};
constexpr std::string_view kKinds[] = {"read4k", "write4k"};

std::string load_name(std::string_view kind, uint32_t count) {
  return fmt::format("targets{}_{}", count, kind);
}

class Targets final : public Experiment {
 public:
  std::string_view name() const override { return "targets"; }

  Result<void> enter(Stage& stage) override {
    for (const std::string_view kind : kKinds) {
      loadgen::DriveLoad load = stage.load();
      load.read_share = kind == "read4k" ? 1 : 0;
      load.depth = kDepth;
      for (const uint32_t count : kCounts) {
        for (const Batching& batching : kBatchings) {
          const Result<void> added =
              stage.add(load_name(kind, count), batching.name,
                        {.doorbell = batching.doorbell, .targets = count}, load);
          if (!added) return added;
        }
      }
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    showing.page().heading("Many targets (Figure 9)");
    showing.page().paragraph(
        "4 KiB, 768 requests outstanding however many targets share them: subsystems of one box "
        "process, each with a port, a session, connections and a drive of its own. One core for "
        "the host, one for all targets.");
    for (const std::string_view kind : kKinds) show_kind(kind, contest, showing);
    std::vector<std::vector<std::string>> rows;
    for (const std::string_view kind : kKinds) {
      const auto kept = contest.ratio({load_name(kind, 48), kAdaptive.name},
                                      {load_name(kind, 1), kAdaptive.name}, per_second);
      showing.ratio(fmt::format("targets48_vs_1_{}", kind), kept);
      for (const uint32_t count : {1U, 48U}) {
        const std::string load = load_name(kind, count);
        showing.ratio(load + "_vs_off",
                      contest.ratio({load, kAdaptive.name}, {load, kOff.name}, per_second));
      }
      rows.push_back({std::string(kind), cell(kept), "kept (no number)"});
    }
    showing.page().table({"48 targets, one = 1", "adaptive", "paper's i10, 48 against 24"}, rows);
    showing.page().paragraph(
        "What differs: the paper gives each of up to 24 targets a core of its own and shares "
        "cores only beyond. Here all share one from the second on, so what each lane has to "
        "batch shrinks with their number; the paper leaves that case to its technical report.");
  }

 private:
  static void show_kind(std::string_view kind, const Contest& contest, Showing& showing) {
    report::LineChart chart{
        .title = kind == "read4k" ? "4 KiB reads" : "4 KiB writes",
        .x = {.title = "targets", .scale = report::Scale::kLogarithmic, .ticks = ticks()},
        .y = {.title = "IO/s"},
        .series = {}};
    for (const Batching& batching : kBatchings) {
      report::Series series{.name = std::string(batching.name), .points = {}};
      for (const uint32_t count : kCounts) {
        const auto rate = contest.median_of(load_name(kind, count), batching.name, per_second);
        series.points.push_back({static_cast<double>(count), rate.value_or(NAN)});
      }
      chart.series.push_back(std::move(series));
    }
    showing.chart(fmt::format("i10-targets-{}", kind), svg(chart), "");
  }
  static std::vector<report::Tick> ticks() {
    std::vector<report::Tick> all;
    for (const uint32_t count : kCounts) {
      all.push_back({static_cast<double>(count), fmt::format("{}", count)});
    }
    return all;
  }
};

}  // namespace

std::unique_ptr<Experiment> make_targets() { return std::make_unique<Targets>(); }

}  // namespace cairn::bench::i10
