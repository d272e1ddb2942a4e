// SPDX-License-Identifier: Apache-2.0
#include "bench/i10/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/i10/experiment.h"
#include "report/build_info.h"

namespace cairn::bench::i10 {

namespace {

std::vector<std::unique_ptr<Experiment>> all_experiments() {
  std::vector<std::unique_ptr<Experiment>> all;
  all.push_back(make_load_latency());
  all.push_back(make_depth_one());
  all.push_back(make_ablation());
  all.push_back(make_components());
  all.push_back(make_mixes());
  all.push_back(make_targets());
  all.push_back(make_sizes());
  return all;
}

report::Page first_part() {
  report::Page page(
      "i10 in Cairn",
      "The evaluation of \"TCP ≈ RDMA: CPU-efficient Remote Storage Access with i10\" (NSDI 2020), "
      "run with Cairn's own host and box, each figure next to the paper's ratio where the paper "
      "has one.");
  page.paragraph(
      "What differs everywhere: both ends are in user space (the paper's are kernel modules), "
      "they talk over loopback on one machine (the paper: two machines, 100 Gb/s), each end has "
      "one core (the paper: up to 24), and drives are memory. The baseline called off is plain "
      "NVMe/TCP by the same program, a send for each message; RDMA was not measured. So compare "
      "ratios, not figures.");
  const Machine machine = this_machine();
  page.paragraph(fmt::format("Commit {}, on {} CPUs of {}, kernel {}.",
                             report::build_info().commit.substr(0, 12), machine.cpus_online,
                             machine.cpu, machine.kernel));
  return page;
}

}  // namespace

const std::vector<std::string>& experiments() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& each : all_experiments()) all.emplace_back(each->name());
    return all;
  }();
  return names;
}

Result<Paper> bench_paper(const Options& options) {
  Paper paper{.report = Report("paper_i10"), .html = {}, .charts = {}};
  report::Page page = first_part();
  Showing showing(paper.report, page, paper.charts);
  for (const std::unique_ptr<Experiment>& each : all_experiments()) {
    const bool wanted =
        options.only.empty() || std::ranges::find(options.only, each->name()) != options.only.end();
    if (!wanted) continue;
    Stage stage(options, each->world(options));
    if (const Result<void> entered = each->enter(stage); !entered) return fail(entered.error());
    const Result<void> ran = stage.contest().run(options.rounds, options.progress);
    if (!ran) return fail(ran.error());
    report_exchanges(stage.contest(), paper.report);
    each->show(stage.contest(), showing);
  }
  paper.html = page.html();
  return paper;
}

}  // namespace cairn::bench::i10
