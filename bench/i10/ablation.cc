// SPDX-License-Identifier: Apache-2.0
// Figure 10: what each mechanism adds.
#include <fmt/format.h>

#include <cmath>

#include "bench/i10/experiment.h"

namespace cairn::bench::i10 {

namespace {

using Mode = fabric::DoorbellOptions::Mode;

struct Step {
  std::string_view name;
  fabric::DoorbellOptions doorbell;
  double of_all_in_paper;  // throughput, as a share of that with all three; 0: not the paper's
};
// In the paper, with 16 cores and a RAM block device, caravans are 38.2% and delayed doorbells
// 23.2% of the throughput (section 4.3.1); what is left is the lanes'.
constexpr Step kSteps[] = {
    {"lanes", {.mode = Mode::kOff}, 0.386},
    {"caravans", {.mode = Mode::kFixed, .delay = 0_us}, 0.768},
    {"doorbells", {.mode = Mode::kFixed}, 1},
    {"adaptive", {.mode = Mode::kAdaptive}, 0},
};
constexpr std::string_view kAll = "doorbells";
constexpr std::string_view kKinds[] = {"read4k", "write4k"};

class Ablation final : public Experiment {
 public:
  std::string_view name() const override { return "ablation"; }

  Result<void> enter(Stage& stage) override {
    for (const std::string_view kind : kKinds) {
      loadgen::DriveLoad load = stage.load();
      load.read_share = kind == "read4k" ? 1 : 0;
      for (const Step& step : kSteps) {
        const Result<void> added =
            stage.add(load_name(kind), step.name, {.doorbell = step.doorbell}, load);
        if (!added) return added;
      }
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    report::Page& page = showing.page();
    page.heading("What each mechanism adds (Figure 10)");
    page.paragraph(
        "4 KiB at depth 128, one lane. Lanes alone: each message leaves in a send of its own. "
        "Caravans: what becomes ready within one turn of the core leaves together, at once. "
        "Doorbells: it waits for 16 messages or 50 us, as in the paper. Adaptive is ours. Shares "
        "are of the throughput with all three of the paper.");
    report::BarChart chart{
        .title = "Throughput, as a share of i10's", .y = {}, .groups = {}, .series = {}};
    report::BarSeries paper{.name = "paper", .values = {}, .is_reference = true};
    for (const Step& step : kSteps) {
      chart.groups.emplace_back(step.name);
      paper.values.push_back(step.of_all_in_paper > 0 ? step.of_all_in_paper : NAN);
    }
    std::vector<std::vector<std::string>> rows;
    for (const std::string_view kind : kKinds) {
      report::BarSeries ours{.name = kind == "read4k" ? "read" : "write", .values = {}};
      for (const Step& step : kSteps) {
        const std::string load = load_name(kind);
        const auto share = contest.ratio({load, step.name}, {load, kAll}, per_second);
        const auto per_cpu =
            contest.ratio({load, step.name}, {load, kSteps[0].name}, per_cpu_second);
        ours.values.push_back(share.value_or(NAN));
        showing.ratio(fmt::format("ablation_{}_{}", kind, step.name), share);
        showing.ratio(fmt::format("ablation_{}_{}_per_cpu_vs_lanes", kind, step.name), per_cpu);
        rows.push_back({fmt::format("{}, {}", kind, step.name),
                        cell(contest.median_of(load, step.name, per_second), 0), cell(share),
                        step.of_all_in_paper > 0 ? cell(step.of_all_in_paper) : "-",
                        cell(per_cpu)});
      }
      chart.series.push_back(std::move(ours));
    }
    chart.series.push_back(std::move(paper));
    showing.chart("i10-ablation", svg(chart), "Figure 10(c): 16 cores, RAM block device");
    page.table({"", "IO/s", "share", "paper's", "I/Os per CPU-second, lanes = 1"}, rows);
    page.paragraph(
        "What differs: the paper's doorbell saves a switch to a kernel thread for each request. "
        "Here the load, the host and its lane share one core and one turn, so caravans find "
        "company without waiting, and there is less left for the doorbell to add.");
  }

 private:
  static std::string load_name(std::string_view kind) { return fmt::format("ablation_{}", kind); }
};

}  // namespace

std::unique_ptr<Experiment> make_ablation() { return std::make_unique<Ablation>(); }

}  // namespace cairn::bench::i10
