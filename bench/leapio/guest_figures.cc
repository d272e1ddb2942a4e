// SPDX-License-Identifier: Apache-2.0
#include "bench/leapio/guest_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "bench/drive/server_process.h"
#include "bench/process.h"
#include "bench/temporary_folder.h"
#include "report/chart.h"

namespace cairn::bench::leapio {

namespace {

using nlohmann::json;

struct Way {
  std::string_view name;   // of the tool
  std::string_view title;  // as the paper has it, or as it is here
};

struct Figure {
  std::string_view name;
  std::string_view title;
  std::string_view paper;
  std::vector<Way> ways;
};

constexpr Way kLeap{"cairn", "Leap"};
constexpr Way kRemoteLeap{"remote_cairn", "Leap"};

const std::vector<Figure>& guest_figures() {
  static const std::vector<Figure> all = {
      {"7",
       "YCSB on RocksDB in a guest",
       "Paper: LeapIO beside pass-through (PT) of a local drive; latencies are somewhat worse, by "
       "virtual interrupts. Here LeapIO's place is taken by cairn serve --vhost-user on a "
       "file. PT has no counterpart: to give a guest a device takes VFIO and an IOMMU, which this "
       "bench does not ask of a machine; Figure 6 and cairn bench drive have what our door adds to "
       "a bare drive.",
       {kLeap}},
      {"8",
       "Other technologies of virtualization",
       "Paper: full virtualization (FV) is slowest; LeapIO has 1.6% less throughput than virtual "
       "host (VH). There by db_bench on SPDK, here by the load of Figure 7. FV is QEMU's emulated "
       "NVMe controller, VH is vhost-user-blk by qemu-storage-daemon, Leap is vhost-user-blk by "
       "cairn serve, all on the same file.",
       {{"fv", "FV"}, {"vh", "VH"}, kLeap}},
      {"9",
       "Remote drives",
       "Paper: LeapIO has 6% less throughput than the kernel's NVMe over fabrics, and is steadier "
       "than SPDK's. Here the box, its file and TCP on loopback are the same for both: the host is "
       "the guest kernel's NVMe/TCP, or Leap, cairn serve before the guest's vhost-user "
       "disk. A kernel's target would have to run in a second emulated machine, whose slowness "
       "would be all one sees; it is left out, and so is SPDK's.",
       {{"remote_kernel", "kernel"}, kRemoteLeap}},
  };
  return all;
}

struct Ratio {
  std::string_view name;
  std::string_view figure;
  std::string_view ours;
  std::string_view theirs;
};
constexpr std::array<Ratio, 3> kRatios = {
    {{"leap_ycsb_vs_fv", "8", "cairn", "fv"},
     {"leap_ycsb_vs_vh", "8", "cairn", "vh"},
     {"leap_remote_vs_kernel", "9", "remote_cairn", "remote_kernel"}}};

struct Workload {
  std::string_view name;
  std::string_view word;  // in names of results
  std::string_view title;
};
constexpr std::array<Workload, 2> kWorkloads = {
    {{"c", "read", "read-only"}, {"a", "mixed", "50-50 read/update"}}};

constexpr std::array<const char*, 2> kNeeded = {"qemu-system-x86_64", "qemu-storage-daemon"};

std::string string_at(const json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<double> numbers_at(const json& row, const char* key) {
  std::vector<double> numbers;
  const auto found = row.find(key);
  if (found == row.end() || !found->is_array()) return numbers;
  for (const json& each : *found) {
    if (each.is_number()) numbers.push_back(each.get<double>());
  }
  return numbers;
}

GuestRow row_of(const json& text) {
  const auto threads = text.find("threads");
  return {
      .way = string_at(text, "way"),
      .workload = string_at(text, "workload"),
      .threads = threads != text.end() && threads->is_number_integer() ? threads->get<int>() : 0,
      .per_second = numbers_at(text, "per_second"),
      .read_p50_us = median(numbers_at(text, "read_p50_us")),
      .read_p99_us = median(numbers_at(text, "read_p99_us")),
      .read_p999_us = median(numbers_at(text, "read_p999_us")),
      .server_cpu_us = median(numbers_at(text, "server_cpu_us"))};
}

// The wanted figures, their rows on the page and in the report.
class GuestPages {
 public:
  GuestPages(const std::vector<GuestRow>& rows, report::Page& page, Paper& paper)
      : rows_(rows), page_(page), paper_(paper) {}

  void explain() {
    page_.paragraph(
        "Figures 7 to 9 are live and not the same each time. What is real: RocksDB, ext4 and the "
        "drivers of a stock Linux kernel in the guest, the servers outside, QEMU between them; "
        "cairn bench ycsb runs in the guest, with uniform keys, direct I/O and records of 1000 "
        "bytes, and checks all it reads. What is emulated: the guest's processor, by QEMU in "
        "software (TCG), some 20 to 50 times slower than hardware. RocksDB and the guest's kernel "
        "are so most of each operation, and doorbells and interrupts cost other than with "
        "hardware: what differs from way to way is what the path to the device costs, and not what "
        "a guest on hardware would see. Drives are files of 256 MiB or more, read and written "
        "past the page cache; each way begins with the same bytes in its file. All share the "
        "processors of "
        "this machine. CPU is that of the serving processes for each operation, the opening of the "
        "database included: FV has none that could be told from the guest's own, and the kernel's "
        "host runs in the guest, so only the box is counted there.");
  }

  void put(const Figure& figure) {
    page_.heading(fmt::format("Figure {}: {}", figure.name, figure.title));
    bool is_first = true;
    for (const Workload& workload : kWorkloads) {
      put_workload(figure, workload, is_first ? figure.paper : std::string_view());
      is_first = false;
    }
    put_table(figure);
    for (const Ratio& ratio : kRatios) {
      if (ratio.figure == figure.name) put_ratio(ratio);
    }
  }

 private:
  std::vector<const GuestRow*> rows_of(const Way& way, const Workload& workload) const {
    std::vector<const GuestRow*> found;
    for (const GuestRow& row : rows_) {
      if (row.way == way.name && row.workload == workload.name) found.push_back(&row);
    }
    return found;
  }

  void put_workload(const Figure& figure, const Workload& workload, std::string_view caption) {
    report::LineChart chart{.title = std::string(workload.title),
                            .x = {.title = "threads", .scale = report::Scale::kLogarithmic},
                            .y = {.title = "op/s"},
                            .series = {}};
    for (const Way& way : figure.ways) {
      report::Series series{.name = std::string(way.title), .points = {}};
      for (const GuestRow* row : rows_of(way, workload)) {
        series.points.push_back({static_cast<double>(row->threads), median(row->per_second)});
        put_line(figure, workload, way, *row);
      }
      chart.series.push_back(std::move(series));
    }
    std::string drawn = svg(chart);
    page_.figure(drawn, caption);
    paper_.charts.push_back(
        {fmt::format("leapio-{}-{}", figure.name, workload.word), std::move(drawn)});
  }

  void put_line(const Figure& figure, const Workload& workload, const Way& way,
                const GuestRow& row) {
    Measurement line{.name = fmt::format("fig{}_{}_{}", figure.name, workload.word, row.threads),
                     .variant = std::string(way.title),
                     .unit = "op/s",
                     .samples = row.per_second,
                     .extras = {{"read_p50_us", row.read_p50_us},
                                {"read_p99_us", row.read_p99_us},
                                {"read_p999_us", row.read_p999_us}}};
    if (row.server_cpu_us > 0) line.extras.emplace_back("server_cpu_us", row.server_cpu_us);
    paper_.report.add(std::move(line));
  }

  void put_table(const Figure& figure) {
    std::vector<std::vector<std::string>> lines;
    for (const Workload& workload : kWorkloads) {
      for (const Way& way : figure.ways) {
        for (const GuestRow* row : rows_of(way, workload)) {
          const bool known = row->server_cpu_us > 0;
          lines.push_back(
              {fmt::format("{}, {}", way.title, workload.title), fmt::format("{}", row->threads),
               fmt::format("{:.0f}", median(row->per_second)),
               fmt::format("{:.0f}", row->read_p50_us), fmt::format("{:.0f}", row->read_p99_us),
               fmt::format("{:.0f}", row->read_p999_us),
               known ? fmt::format("{:.0f}", row->server_cpu_us) : "-"});
        }
      }
    }
    page_.table({"", "threads", "op/s", "read P50 us", "P99 us", "P99.9 us", "CPU us/op"}, lines);
  }

  void put_ratio(const Ratio& ratio) {
    double logarithms = 0;
    int loads = 0;
    for (const GuestRow& ours : rows_) {
      if (ours.way != ratio.ours) continue;
      const auto theirs = std::ranges::find_if(rows_, [&](const GuestRow& row) {
        return row.way == ratio.theirs && row.workload == ours.workload &&
               row.threads == ours.threads;
      });
      if (theirs == rows_.end()) continue;
      logarithms +=
          std::log(paired_ratio({.samples = ours.per_second}, {.samples = theirs->per_second}));
      ++loads;
    }
    if (loads > 0) {
      paper_.report.add_ratio(std::string(ratio.name), std::exp(logarithms / loads));
    }
  }

  const std::vector<GuestRow>& rows_;
  report::Page& page_;
  Paper& paper_;
};

bool can_run_guests() { return std::ranges::all_of(kNeeded, has_program); }

std::vector<const Figure*> wanted(const Options& options) {
  std::vector<const Figure*> figures;
  if (options.figures.empty() && !can_run_guests()) return figures;
  for (const Figure& figure : guest_figures()) {
    if (options.wants(figure.name)) figures.push_back(&figure);
  }
  return figures;
}

void skip(const std::vector<const Figure*>& figures, const std::string& why, report::Page& page,
          Paper& paper) {
  page.heading("Figures 7 to 9");
  page.paragraph(fmt::format("RocksDB in a guest was not measured: {}.", why));
  for (const Figure* figure : figures) paper.report.skip(fmt::format("fig{}", figure->name), why);
}

std::vector<std::string> command_of(const Options& options,
                                    const std::vector<const Figure*>& figures,
                                    const TemporaryFolder& folder, const std::string& output) {
  std::vector<std::string> args = {"python3",
                                   "-B",
                                   CAIRN_YCSB_GUEST,
                                   "--cairn",
                                   options.program,
                                   "--folder",
                                   folder.file(""),
                                   "--output",
                                   output,
                                   "--keys",
                                   fmt::format("{}", options.guest_keys),
                                   "--seconds",
                                   fmt::format("{}", options.guest_seconds)};
  std::vector<std::string_view> ways;
  for (const Figure* figure : figures) {
    for (const Way& way : figure->ways) {
      if (std::ranges::find(ways, way.name) == ways.end()) ways.push_back(way.name);
    }
  }
  for (const std::string_view way : ways) {
    args.emplace_back("--way");
    args.emplace_back(way);
  }
  return args;
}

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

Result<std::vector<GuestRow>> parse_guest_rows(std::string_view text) {
  const json said = json::parse(text, nullptr, false);
  std::vector<GuestRow> rows;
  if (said.is_object() && said.contains("rows") && said["rows"].is_array()) {
    for (const json& each : said["rows"]) {
      if (!each.is_object()) continue;
      GuestRow row = row_of(each);
      const bool is_whole =
          row.threads > 0 && !row.per_second.empty() &&
          std::ranges::all_of(row.per_second, [](double rate) { return rate > 0; });
      if (is_whole) rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) return fail(Errc::kInvalid, "the benchmark in a guest has measured nothing");
  return rows;
}

std::string parse_guest_problem(std::string_view text) {
  const json said = json::parse(text, nullptr, false);
  return said.is_object() ? string_at(said, "problem") : std::string();
}

void put_guest_figures(const Options& options, const std::vector<GuestRow>& rows,
                       report::Page& page, Paper& paper) {
  GuestPages pages(rows, page, paper);
  pages.explain();
  for (const Figure& figure : guest_figures()) {
    if (options.wants(figure.name)) pages.put(figure);
  }
}

Result<void> show_guest_figures(const Options& options, report::Page& page, Paper& paper) {
  const std::vector<const Figure*> figures = wanted(options);
  if (figures.empty()) return {};
  std::error_code error;
  if (!has_program("python3") || !std::filesystem::exists(CAIRN_YCSB_GUEST, error)) {
    skip(figures, fmt::format("python3 and {} of the sources are needed", CAIRN_YCSB_GUEST), page,
         paper);
    return {};
  }
  Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  if (options.progress) options.progress("RocksDB in a virtual machine, which takes minutes");
  const std::string output = folder->file("guest.json");
  Result<Process> guest = Process::start_program(command_of(options, figures, *folder, output), -1);
  if (!guest) return fail(guest.error());
  const Result<Duration> ended = guest->wait();
  const std::string said = contents_of(output);
  const Result<std::vector<GuestRow>> rows = parse_guest_rows(said);
  if (!ended || !rows) {
    const std::string problem = parse_guest_problem(said);
    skip(figures,
         problem.empty() ? fmt::format("{} failed without a word", CAIRN_YCSB_GUEST) : problem,
         page, paper);
    return {};
  }
  put_guest_figures(options, *rows, page, paper);
  return {};
}

}  // namespace cairn::bench::leapio
