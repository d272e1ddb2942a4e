// SPDX-License-Identifier: Apache-2.0
// Table 2, 3 and 4: processor time by component.
#include "bench/i10/components.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/i10/experiment.h"
#include "bench/null_drive.h"
#include "bench/workload.h"

namespace cairn::bench::i10 {

namespace {

const std::string kLoad = "components_read4k";
constexpr std::string_view kApplication = "application";
constexpr Batching kBatchings[] = {kOff, kFixed, kAdaptive};

struct Column {
  std::string name;
  double Components::* part;
};
const Column kColumns[] = {{"application", &Components::application},
                           {"block", &Components::block},
                           {"net tx", &Components::net_tx},
                           {"net rx", &Components::net_rx},
                           {"other", &Components::other},
                           {"idle", &Components::idle}};

// Table 4: 4 KiB random reads, RAM block device, at the host; block TX and RX are one here.
constexpr Components kPaperLanes{.application = 8.0,
                                 .block = 12.68 + 15.9,
                                 .net_tx = 27.0,
                                 .net_rx = 15.84,
                                 .other = 17.07,
                                 .idle = 3.51};
constexpr Components kPaperI10{.application = 14.4,
                               .block = 23.99 + 33.39,
                               .net_tx = 3.63,
                               .net_rx = 12.16,
                               .other = 9.65,
                               .idle = 2.78};

// The load alone.
Result<ExchangeFigures> run_alone(const Options& options, loadgen::DriveLoad load) {
  load.clock = &now;
  Result<std::unique_ptr<env::World>> world = options.epoll_world({.cpus = {options.host_cpu}});
  if (!world) return fail(world.error());
  Result<loadgen::LoadResult> result = fail(Errc::kIo, "the load did not run");
  ExchangeFigures figures;
  const auto program = [&](env::Env& env) -> task::Task<void> {
    return [](env::Env& there, loadgen::DriveLoad what, Result<loadgen::LoadResult>& into,
              ExchangeFigures& out) -> task::Task<void> {
      NullDrive drive({.blocks = 1U << 16});
      Usage before;
      Usage after;
      const loadgen::LoadWatch watch{.begins = [&] { before = usage_of(there); },
                                     .ended = [&] { after = usage_of(there); }};
      into = co_await loadgen::run_load(there, drive, what, there.stop_token(), watch);
      if (!into) co_return;
      out.per_second = into->per_second;
      const auto count = static_cast<double>(std::max<uint64_t>(into->requests(), 1));
      out.client = cost_between(before, after, count);
    }(env, load, result, figures);
  };
  const Result<void> ran = (*world)->run(program);
  if (!ran) return fail(ran.error());
  if (!result) return fail(result.error());
  return figures;
}

class ComponentsExperiment final : public Experiment {
 public:
  std::string_view name() const override { return "components"; }
  const WorldFactory& world(const Options& options) const override { return options.epoll_world; }

  Result<void> enter(Stage& stage) override {
    const loadgen::DriveLoad load = stage.load();
    stage.contest().add(kLoad, std::string(kApplication),
                        [&stage, load] { return run_alone(stage.options(), load); });
    for (const Batching& batching : kBatchings) {
      const Result<void> added = stage.add(
          kLoad, batching.name, {.doorbell = batching.doorbell, .time_calls = true}, load);
      if (!added) return added;
    }
    return {};
  }

  void show(const Contest& contest, Showing& showing) const override {
    showing.page().heading("Processor time by component (Tables 2 and 4)");
    showing.page().paragraph(
        "4 KiB reads at depth 128, in percent of the host's core and of the box's. Measured on "
        "epoll, where each send and each receive is a call of its own that can be timed; a ring "
        "does many of both in one. Application is what the same load costs on a drive that "
        "answers at once; block is the rest of the time outside the kernel: drive, commands, "
        "PDUs, tasks. Net tx and rx are the time in calls that send and receive. Other is the "
        "rest of the kernel's: waiting, waking, timers.");
    const std::optional<double> application = contest.median_of(
        kLoad, kApplication, [](const ExchangeFigures& each) { return each.client.cpu_us; });
    std::vector<std::pair<std::string, Components>> host;
    std::vector<std::pair<std::string, Components>> box;
    for (const Batching& batching : kBatchings) {
      host.emplace_back(batching.name, median_of(contest, batching, application.value_or(0)));
      box.emplace_back(batching.name, median_of(contest, batching, std::nullopt));
    }
    add_ratios(host, showing);
    std::vector<std::pair<std::string, Components>> with_paper = host;
    with_paper.emplace_back("paper lane", kPaperLanes);
    with_paper.emplace_back("paper i10", kPaperI10);
    showing.chart("i10-components-host", svg(bars("Host", with_paper)), "Right: Table 4");
    showing.chart("i10-components-box", svg(bars("Box", box)), "");
    show_table(with_paper, box, showing);
    const auto block_us = contest.median_of(
        kLoad, kAdaptive.name,
        [&](const ExchangeFigures& each) { return each.client.user_us - application.value_or(0); });
    showing.page().paragraph(fmt::format(
        "What differs: the paper profiles the kernel of a host with a NIC, where a separate "
        "interrupt handler takes packets. Over loopback the sender's call carries its packets up "
        "to the receiver's socket, so net tx of each side holds much of the other's net rx. "
        "There is no blk-mq: block, in user space, is {} us of the host's time for each I/O "
        "(adaptive). And a host that waits for its box is idle, which the paper's never is.",
        cell(block_us)));
  }

 private:
  // Nothing for `application_us`: of the box.
  static Components median_of(const Contest& contest, const Batching& batching,
                              std::optional<double> application_us) {
    Components middle;
    for (const Column& column : kColumns) {
      const auto part = [&](const ExchangeFigures& each) {
        const Components all = application_us
                                   ? components_of(each.client, each.per_second, *application_us)
                                   : components_of(each.server, each.per_second, 0);
        return all.*column.part;
      };
      middle.*column.part = contest.median_of(kLoad, batching.name, part).value_or(0);
    }
    return middle;
  }
  static void add_ratios(const std::vector<std::pair<std::string, Components>>& host,
                         Showing& showing) {
    const Components& off = host.front().second;
    const Components& adaptive = host.back().second;
    showing.ratio("components_net_off_vs_adaptive",
                  (off.net_tx + off.net_rx) / (adaptive.net_tx + adaptive.net_rx));
    showing.ratio("components_application_adaptive_vs_off", adaptive.application / off.application);
  }
  static report::BarChart bars(std::string title,
                               const std::vector<std::pair<std::string, Components>>& sides) {
    report::BarChart chart{.title = std::move(title),
                           .y = {.title = "% of a core", .max = 100},
                           .groups = {},
                           .series = {},
                           .stacked = true};
    for (const auto& [name, components] : sides) chart.groups.push_back(name);
    for (const Column& column : kColumns) {
      if (column.part == &Components::idle) continue;  // what is left above the bar
      report::BarSeries series{.name = column.name, .values = {}};
      for (const auto& [name, components] : sides) series.values.push_back(components.*column.part);
      chart.series.push_back(std::move(series));
    }
    return chart;
  }
  static void show_table(const std::vector<std::pair<std::string, Components>>& host,
                         const std::vector<std::pair<std::string, Components>>& box,
                         Showing& showing) {
    std::vector<std::string> header = {"% of a core"};
    for (const Column& column : kColumns) header.push_back(column.name);
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const std::string& side, const auto& sides) {
      for (const auto& [name, components] : sides) {
        std::vector<std::string> row = {side + name};
        for (const Column& column : kColumns) row.push_back(cell(components.*column.part, 1));
        rows.push_back(std::move(row));
      }
    };
    add("host, ", host);
    add("box, ", box);
    showing.page().table(header, rows);
  }
};

}  // namespace

Components components_of(const SideCost& cost, double per_second, double application_us) {
  const double percent_of_us = per_second / 1e4;
  const auto percent = [&](double us) { return std::max(us, 0.0) * percent_of_us; };
  const double application_of_it = std::min(application_us, cost.user_us);
  return {.application = percent(application_of_it),
          .block = percent(cost.user_us - application_of_it),
          .net_tx = percent(cost.sending_us),
          .net_rx = percent(cost.receiving_us),
          .other = percent(cost.cpu_us - cost.user_us - cost.sending_us - cost.receiving_us),
          .idle = std::max(100 - percent(cost.cpu_us), 0.0)};
}

std::unique_ptr<Experiment> make_components() { return std::make_unique<ComponentsExperiment>(); }

}  // namespace cairn::bench::i10
