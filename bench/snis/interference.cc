// SPDX-License-Identifier: Apache-2.0
#include "bench/snis/interference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/rng.h"
#include "base/units.h"
#include "model/flash/workload.h"
#include "report/chart.h"

namespace cairn::bench::snis_paper {

namespace {

using flash::Op;
using flash::TimedRequest;

constexpr uint64_t kSpace = 10_GiB;
constexpr uint64_t kRequestsEach = 10'000;
constexpr double kNanosPerMicro = 1e3;
// A size drawn from a long tail, in sectors, is kept below this.
constexpr double kSectorsMax = 4096;

std::vector<TimedRequest> draw(Op op, const Mixture& load, uint64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<TimedRequest> requests;
  double at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    at += rng.exponential(load.gap_us * kNanosPerMicro);
    const double sectors = rng.exponential(load.size / flash::kSectorBytes);
    constexpr uint64_t kAlignment = 8;
    const uint64_t lba = rng.below(kSpace / flash::kSectorBytes / kAlignment) * kAlignment;
    requests.push_back(
        {static_cast<flash::Nanos>(at),
         {.op = op,
          .lba = lba,
          .sectors = static_cast<uint32_t>(std::clamp(std::round(sectors), 1.0, kSectorsMax)),
          .cookie = i}});
  }
  return requests;
}

struct Means {
  double read_us = 0;
  double write_us = 0;
};

Means run(const flash::Parameters& drive, const std::vector<TimedRequest>& requests) {
  flash::FlashModel model(drive);
  double sums[2] = {};
  uint64_t counts[2] = {};
  flash::run_open_loop(model, requests, [&](const flash::Completion& c) {
    const int direction = c.op == Op::kRead ? 0 : 1;
    sums[direction] += static_cast<double>(c.done - c.arrival) / kNanosPerMicro;
    ++counts[direction];
  });
  const auto mean = [&](int direction) {
    return counts[direction] == 0 ? 0 : sums[direction] / static_cast<double>(counts[direction]);
  };
  return {mean(0), mean(1)};
}

// Table I of the paper; its authors also let many more pages be on their way to flash, and made a
// full cache give up dirty pages only.
flash::Parameters table_one(bool as_the_authors) {
  flash::Parameters p;
  p.mqsim = as_the_authors;
  p.gc_policy = flash::GcPolicy::kRga;
  p.gc_preemptible = false;
  p.dram_mt_per_s = 400;
  p.dram_burst_bytes = 2;
  p.channel_mt_per_s = 400;
  p.technology = flash::Technology::kTlc;
  p.page_bytes = 16384;
  p.read_ns.fill(2'000);
  p.program_ns.fill(100'000);
  p.write_back_pages = 300;
  p.cache_evicts_dirty_only = as_the_authors;
  return p;
}

std::string size_text(double bytes) {
  return bytes >= 1024 ? fmt::format("{:.0f} KB", bytes / 1024) : fmt::format("{:.0f} B", bytes);
}

void show_part(std::string_view title, const std::vector<Slowdown>& authors,
               const std::vector<Slowdown>& hardware, bool by_gap, report::Page& page,
               const PutChart& put) {
  report::BarChart chart{
      .title = std::string(title),
      .y = {.title = "latency mixed / alone", .scale = report::Scale::kLogarithmic},
      .groups = {},
      .series = {{.name = "reads, as the authors ran it", .values = {}},
                 {.name = "writes, as the authors ran it", .values = {}},
                 {.name = "reads, hardware's rules", .values = {}},
                 {.name = "writes, hardware's rules", .values = {}}}};
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < authors.size(); ++i) {
    const Slowdown& a = authors[i];
    const Slowdown& h = hardware[i];
    const std::string name =
        by_gap ? fmt::format("{:.0f} us", a.load.gap_us) : size_text(a.load.size);
    chart.groups.push_back(name);
    const double values[] = {a.read(), a.write(), h.read(), h.write()};
    std::vector<std::string> row = {
        name, fmt::format("{:.1f}", a.read_alone_us), fmt::format("{:.1f}", a.read_mixed_us),
        fmt::format("{:.1f}", a.write_alone_us), fmt::format("{:.1f}", a.write_mixed_us)};
    for (size_t k = 0; k < 4; ++k) {
      chart.series[k].values.push_back(values[k]);
      row.push_back(fmt::format("{:.2f}", values[k]));
    }
    rows.push_back(std::move(row));
  }
  put(by_gap ? "snis-interference-gap" : "snis-interference-size", svg(chart),
      by_gap ? "Mean size 4 KB, by the mean time between requests"
             : "Mean time between requests 100 us, by the mean size");
  page.table({by_gap ? "gap" : "size", "read alone (us)", "read mixed (us)", "write alone (us)",
              "write mixed (us)", "reads", "writes", "reads, hardware", "writes, hardware"},
             rows);
}

}  // namespace

Slowdown measure_slowdown(const flash::Parameters& drive, const Mixture& load,
                          uint64_t requests_each, uint64_t seed) {
  const std::vector<TimedRequest> reads = draw(Op::kRead, load, requests_each, seed);
  const std::vector<TimedRequest> writes = draw(Op::kWrite, load, requests_each, seed + 1);
  std::vector<TimedRequest> both = reads;
  both.insert(both.end(), writes.begin(), writes.end());
  std::ranges::sort(both, {}, [](const TimedRequest& r) {
    return std::tuple(r.arrival, r.request.op, r.request.cookie);
  });
  const Means mixed = run(drive, both);
  return {.load = load,
          .read_alone_us = run(drive, reads).read_us,
          .read_mixed_us = mixed.read_us,
          .write_alone_us = run(drive, writes).write_us,
          .write_mixed_us = mixed.write_us};
}

Interference measure_interference(bool as_the_authors, uint64_t seed) {
  const flash::Parameters drive = table_one(as_the_authors);
  Interference found;
  for (const double gap_us : {100.0, 10.0, 1.0}) {
    found.by_gap.push_back(
        measure_slowdown(drive, {.gap_us = gap_us, .size = 4_KiB}, kRequestsEach, seed));
  }
  for (const uint64_t size : {uint64_t{512}, 4_KiB, 16_KiB, 64_KiB}) {
    found.by_size.push_back(measure_slowdown(
        drive, {.gap_us = 100, .size = static_cast<double>(size)}, kRequestsEach, seed));
  }
  return found;
}

void show_interference(const Interference& authors, const Interference& hardware, Report& report,
                       report::Page& page, const PutChart& chart) {
  page.heading("Figure 2: reads and writes in each other's way");
  page.paragraph(
      "The same requests, reads and writes alone and together, on the drive of Table I. The "
      "paper's claims: both directions suffer below 10 us between requests, reads much more than "
      "writes at 1 us, and both the more the larger requests are. Beside it stands the same drive "
      "by the rules of hardware instead of the simulator's that the paper used: dies work side by "
      "side.");
  show_part("Interference on intensity", authors.by_gap, hardware.by_gap, true, page, chart);
  show_part("Interference on volume", authors.by_size, hardware.by_size, false, page, chart);
  for (const Slowdown& one : authors.by_gap) {
    report.add_ratio(fmt::format("fig2_read_slowdown_{:.0f}us", one.load.gap_us), one.read());
    report.add_ratio(fmt::format("fig2_write_slowdown_{:.0f}us", one.load.gap_us), one.write());
  }
  for (const Slowdown& one : authors.by_size) {
    report.add_ratio(fmt::format("fig2_read_slowdown_{:.0f}B", one.load.size), one.read());
    report.add_ratio(fmt::format("fig2_write_slowdown_{:.0f}B", one.load.size), one.write());
  }
}

}  // namespace cairn::bench::snis_paper
