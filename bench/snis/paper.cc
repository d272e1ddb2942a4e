// SPDX-License-Identifier: Apache-2.0
#include "bench/snis/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/snis/interference.h"
#include "bench/workload.h"
#include "report/build_info.h"
#include "report/page.h"
#include "snis/coupled.h"
#include "snis/figures.h"
#include "snis/iterations.h"
#include "trace/shape.h"
#include "trace/synthetic.h"

namespace cairn::bench::snis_paper {

namespace {

using snis::Iteration;
using snis::Iterations;
using trace::PaperTrace;

constexpr int kFixedPointMax = 5000;  // iterations; the prefix grows with each, so far fewer do
constexpr uint64_t kSmallBuffer = 1ULL << 20;
constexpr int kBins = 250;
constexpr std::string_view kHeavy = "F_t_h";

// Everything that was found about one trace.
struct Found {
  const PaperTrace* row = nullptr;
  std::vector<trace::Record> requests;
  std::vector<snis::Step> steps;
  std::optional<int> stable_at;
  double cpu_seconds = 0;
  snis::Step coupled;
  snis::Differences stopped;  // where the paper stops, from the coupled loop
  snis::Metrics at_stop;
  std::optional<snis::Differences> fixed;  // at the fixed point, from the coupled loop
  size_t fixed_iterations = 0;
};

struct Load {
  double kilobytes = 0;  // mean
  double gap_us = 0;
  double gbps = 0;
};
Load load_of(const std::vector<trace::Record>& requests, bool write) {
  double bytes = 0;
  double count = 0;
  snis::Nanos last = 0;
  for (const trace::Record& request : requests) {
    if (request.write != write) continue;
    bytes += request.bytes;
    ++count;
    last = request.arrival;
  }
  if (count == 0 || last == 0) return {};
  const auto span = static_cast<double>(last);
  return {.kilobytes = bytes / count / 1e3, .gap_us = span / count / 1e3, .gbps = bytes * 8 / span};
}

std::vector<trace::Record> requests_of(const PaperTrace& row, const Options& options) {
  trace::Synthetic load = trace::synthetic_of(row, static_cast<uint64_t>(options.seed));
  load.reads.requests = options.requests / 2;
  load.writes.requests = options.requests - load.reads.requests;
  std::vector<trace::Record> requests = trace::draw(load);
  trace::Shaper shaper(
      {.initiators = static_cast<uint32_t>(options.system.initiator_hosts.size())});
  for (trace::Record& request : requests) request = shaper.shape(request);
  return requests;
}

snis::System with_bins(snis::System system, const std::vector<trace::Record>& requests) {
  const snis::Picos span = snis::network_time(requests.back().arrival);
  system.network.bin = std::max<snis::Picos>(span / kBins, net::kMicrosecond);
  return system;
}

Found run_trace(const PaperTrace& row, const Options& options) {
  Found found{.row = &row, .requests = requests_of(row, options)};
  const snis::System drawn = with_bins(options.system, found.requests);
  const Iteration coupled = snis::run_coupled(snis::SystemModels(drawn), found.requests);
  found.coupled = snis::describe(found.requests, coupled);
  const snis::SystemModels models(options.system);
  snis::LocalStorage storage(models, found.requests);

  // The simulations alone are timed, as the peers' were; what is shown of them is not.
  std::vector<Iteration> all;
  const double before = cpu_time().seconds();
  for (int i = 0; i < options.iterations; ++i) {
    all.push_back(snis::iterate(models, found.requests, storage, i == 0 ? nullptr : &all.back()));
  }
  found.cpu_seconds = cpu_time().seconds() - before;

  Iterations iterations(models, found.requests, storage,
                        {.until = snis::Until::kUnchanged, .iterations = kFixedPointMax});
  for (Iteration& iteration : all) {
    const bool was_stable = iterations.convergence().at().has_value();
    const snis::Times times = iteration.times;
    const snis::Step& step = iterations.take(std::move(iteration));
    // Where nothing is stable, the last iteration is where one stops.
    const bool last = iterations.steps().size() == all.size();
    if (was_stable || !(iterations.convergence().at() || last)) continue;
    found.stopped = snis::differences(found.requests, times, coupled.times);
    found.at_stop = step.metrics;
  }
  found.steps = iterations.steps();
  found.stable_at = iterations.convergence().at();
  if (!options.fixed_points) return found;
  while (!iterations.done()) iterations.advance();
  found.fixed_iterations = iterations.steps().size();
  found.fixed = snis::differences(found.requests, iterations.last().times, coupled.times);
  return found;
}

std::vector<Found> run_traces(const Options& options) {
  std::vector<Found> all;
  for (const PaperTrace& row : trace::paper_traces()) {
    const bool wanted =
        options.only.empty() || std::ranges::find(options.only, row.name) != options.only.end();
    if (!wanted) continue;
    if (options.progress) options.progress(row.name);
    all.push_back(run_trace(row, options));
  }
  return all;
}

void put_numbers(const std::vector<Found>& all, const Options& options, Report& report) {
  uint64_t apart = 0;
  for (const Found& found : all) {
    const PaperTrace& row = *found.row;
    Measurement measured{.name = row.name, .unit = "cpu s", .samples = {found.cpu_seconds}};
    measured.extras = {{"stable_at", found.stable_at.value_or(-1)},
                       {"paper_stable_at", row.converged_at},
                       {"fixed_point_iterations", static_cast<double>(found.fixed_iterations)}};
    report.add(std::move(measured));
    if (row.name == kHeavy) report.add_ratio("snis_heavy_s", found.cpu_seconds);
    apart += found.fixed ? found.fixed->requests : 0;
  }
  if (options.fixed_points && !all.empty()) {
    report.add_simulated_ratio("coupled_vs_iterated_differences", static_cast<double>(apart));
  }
}

class Presentation {
 public:
  Presentation(std::vector<Found> all, const Options& options)
      : all_(std::move(all)),
        options_(options),
        page_("SNIS in Cairn",
              "The evaluation of \"SNIS: Storage-Network Iterative Simulation for Disaggregated "
              "Storage Systems\" with Cairn's flash and network models, beside the paper's values, "
              "and beside both models in one loop of events.") {}

  Paper show() {
    page_.paragraph(
        "What differs: the traces are drawn anew from the moments of the Fujitsu VDI trace (the "
        "paper's own are not published), the models are Cairn's (the paper's: MQSim and NS3-RDMA), "
        "and the number of spines (4) and the buffers of switches (12 MiB) are our choice.");
    page_.paragraph(fmt::format("Commit {}.", report::build_info().commit.substr(0, 12)));
    if (options_.wants("2")) {
      const auto seed = static_cast<uint64_t>(options_.seed);
      show_interference(measure_interference(true, seed), measure_interference(false, seed),
                        paper_.report, page_,
                        [this](std::string name, std::string svg, const std::string& caption) {
                          chart(std::move(name), std::move(svg), caption);
                        });
    }
    if (!all_.empty()) show_table();
    if (options_.wants("4") || options_.wants("7")) show_convergence();
    if (options_.wants("5")) show_throughput();
    if (options_.wants("6")) show_network();
    if (options_.figures.empty()) show_truth();
    put_numbers(all_, options_, paper_.report);
    paper_.html = page_.html();
    return std::move(paper_);
  }

 private:
  static std::string pair(double ours, double paper, int digits = 1) {
    return fmt::format("{:.{}f} ({:.{}f})", ours, digits, paper, digits);
  }

  void show_table() {
    page_.heading("Table II: traces and convergence");
    std::vector<std::vector<std::string>> rows;
    for (const Found& found : all_) {
      const PaperTrace& row = *found.row;
      const Load read = load_of(found.requests, false);
      const Load write = load_of(found.requests, true);
      rows.push_back(
          {row.name, pair(read.kilobytes, row.read_size_kb),
           pair(write.kilobytes, row.write_size_kb), pair(read.gap_us, row.read_gap_us),
           pair(write.gap_us, row.write_gap_us), pair(read.gbps, row.read_gbps, 2),
           pair(write.gbps, row.write_gbps, 2),
           fmt::format("{} ({})", found.stable_at ? fmt::format("{}", *found.stable_at) : "-",
                       row.converged_at)});
    }
    page_.table({"ours (paper)", "read KB", "write KB", "read gap us", "write gap us", "read Gb/s",
                 "write Gb/s", "stable at"},
                rows);
    page_.paragraph(
        fmt::format("Means of {} requests of high variance lie off the mean they are drawn with. "
                    "All iterations "
                    "of a trace took {} processor seconds.",
                    options_.requests, times_text()));
  }
  std::string times_text() const {
    std::string text;
    for (const Found& found : all_) {
      text +=
          fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", found.row->name, found.cpu_seconds);
    }
    return text;
  }

  void show_convergence() {
    page_.heading("Figures 4 and 7: from one iteration to the next");
    for (const Found& found : all_) {
      chart(fmt::format("snis-convergence-{}", found.row->name),
            svg(snis::convergence_chart(found.row->name, found.steps)),
            fmt::format("Stable at {} by the paper's rules; in the paper at {}",
                        found.stable_at ? fmt::format("{}", *found.stable_at) : "none",
                        found.row->converged_at));
    }
  }

  const Found* heavy() const {
    const auto found =
        std::ranges::find_if(all_, [](const Found& each) { return each.row->name == kHeavy; });
    return found == all_.end() ? nullptr : &*found;
  }

  void show_throughput() {
    if (heavy() == nullptr) return;
    page_.heading("Figure 5: throughput in each iteration of F_t_h");
    chart("snis-throughput-F_t_h", svg(snis::throughput_chart(heavy()->steps)),
          "The curves lie over each other, as in the paper");
  }

  void show_network() {
    if (heavy() == nullptr) return;
    page_.heading("Figure 6: PAUSE and sending rate of F_t_h");
    const snis::NetworkFacts& usual = heavy()->coupled.network;
    chart("snis-rate-F_t_h", svg(snis::rate_chart(usual)),
          "Reads fill the target's link of 10 Gb/s");
    snis::System small = with_bins(options_.system, heavy()->requests);
    small.network.buffer_bytes = kSmallBuffer;
    const snis::NetworkFacts paused =
        snis::run_coupled(snis::SystemModels(small), heavy()->requests).network;
    chart("snis-pause-F_t_h", svg(snis::pause_chart(paused)), "Switches with 1 MiB of buffer");
    chart("snis-rate-paused-F_t_h", svg(snis::rate_chart(paused)), "Switches with 1 MiB of buffer");
    page_.paragraph(
        fmt::format("With 12 MiB of buffer in a switch no queue reaches a threshold: {} PAUSE "
                    "frames. With 1 MiB "
                    "there are {} at hosts and {} at switches.",
                    usual.pauses_at_hosts + usual.pauses_at_switches, paused.pauses_at_hosts,
                    paused.pauses_at_switches));
  }

  void show_truth() {
    page_.heading("The iteration against one coupled loop");
    page_.paragraph(
        "The paper stops when a criterion is below 10 percent. What that is worth shows one loop "
        "of events over both models, which the iteration approaches: each pass makes a longer "
        "beginning exact.");
    std::vector<std::vector<std::string>> rows;
    for (const Found& found : all_) {
      std::vector<std::string> row = {found.row->name};
      for (const snis::Beside& each : snis::beside(found.at_stop, found.coupled.metrics)) {
        row.push_back(fmt::format("{:+.2f}%", each.error() * 100));
      }
      row.push_back(fmt::format("{}", found.stopped.requests));
      row.push_back(fmt::format("{:.1f}", found.stopped.max_abs_ns * 1e-3));
      row.push_back(found.fixed ? fmt::format("{}", found.fixed_iterations) : "-");
      row.push_back(found.fixed ? fmt::format("{}", found.fixed->requests) : "-");
      rows.push_back(std::move(row));
    }
    std::vector<std::string> heading = {"where the paper stops"};
    for (const snis::Beside& each : snis::beside({}, {})) heading.push_back(each.name);
    heading.insert(heading.end(), {"requests that differ", "by at most us",
                                   "iterations until unchanged", "then differ"});
    page_.table(heading, rows);
  }

  void chart(std::string name, std::string svg, const std::string& caption) {
    page_.figure(svg, caption);
    paper_.charts.push_back({std::move(name), std::move(svg)});
  }

  const std::vector<Found> all_;
  const Options& options_;
  report::Page page_;
  Paper paper_{.report = Report("paper_snis"), .html = {}, .charts = {}};
};

}  // namespace

std::vector<std::string> traces() {
  std::vector<std::string> names;
  for (const PaperTrace& row : trace::paper_traces()) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> figures() { return {"2", "4", "5", "6", "7"}; }

bool Options::wants(std::string_view figure) const {
  return figures.empty() || std::ranges::find(figures, figure) != figures.end();
}

Paper bench_paper(const Options& options) {
  // Figure 2 alone needs no trace.
  const bool needs_traces = options.figures != std::vector<std::string>{"2"};
  return Presentation(needs_traces ? run_traces(options) : std::vector<Found>{}, options).show();
}

void bench_snis(const Options& options, Report& report) {
  put_numbers(run_traces(options), options, report);
}

}  // namespace cairn::bench::snis_paper
