// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/guest_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/drive/server_process.h"
#include "bench/process.h"
#include "bench/temporary_folder.h"

namespace cairn::bench {

namespace {

using nlohmann::json;

constexpr std::string_view kOurs = "vhost_user";
constexpr std::string_view kTheirs = "vhost_user_qsd_";

std::vector<double> numbers_at(const json& row, const char* key) {
  std::vector<double> numbers;
  for (const json& each : row.value(key, json::array())) {
    if (each.is_number()) numbers.push_back(each.get<double>());
  }
  return numbers;
}

struct Row {
  std::string job;
  std::string way;
  std::vector<double> iops;
  std::vector<double> per_cpu_second;
  double p50_us = 0;
  double p99_us = 0;
};

Row row_of(const json& text) {
  return {.job = text.value("job", ""),
          .way = text.value("way", ""),
          .iops = numbers_at(text, "iops"),
          .per_cpu_second = numbers_at(text, "io_per_cpu_second"),
          .p50_us = median(numbers_at(text, "p50_us")),
          .p99_us = median(numbers_at(text, "p99_us"))};
}

void add_line(const Row& row, Report& report) {
  const double per_cpu_second = median(row.per_cpu_second);
  report.add({.name = "guest_" + row.job,
              .variant = row.way,
              .unit = "IO/s",
              .samples = row.iops,
              .extras = {{"io_per_cpu_second", per_cpu_second},
                         {"cpu_us", per_cpu_second > 0 ? 1e6 / per_cpu_second : 0},
                         {"p50_us", row.p50_us},
                         {"p99_us", row.p99_us}}});
}

// Of each job against qemu's better way of I/O; then the geometric mean of the jobs.
void add_ratios(const std::vector<Row>& rows, Report& report) {
  double product = 1;
  int jobs = 0;
  for (const Row& ours : rows) {
    if (ours.way != kOurs) continue;
    double worst = INFINITY;
    for (const Row& theirs : rows) {
      if (theirs.job != ours.job || !theirs.way.starts_with(kTheirs)) continue;
      const double ratio =
          paired_ratio({.samples = ours.per_cpu_second}, {.samples = theirs.per_cpu_second});
      worst = std::min(worst, ratio);
    }
    if (!std::isfinite(worst)) continue;
    report.add_ratio(fmt::format("guest_{}_per_cpu_vs_qsd", ours.job), worst);
    product *= worst;
    ++jobs;
  }
  if (jobs > 0) report.add_ratio("vhost_iops_per_cpu_vs_qsd", std::pow(product, 1.0 / jobs));
}

}  // namespace

Result<void> bench_guest(const DriveBenchOptions& options, Report& report) {
  const std::string tool = CAIRN_GUEST_BENCH;
  std::error_code error;
  if (!has_program("python3") || !std::filesystem::exists(tool, error)) {
    report.skip("guest", fmt::format("python3 and {} are needed", tool));
    return {};
  }
  Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  if (options.progress) options.progress("guest: fio in a virtual machine, which takes minutes");
  const std::string output = folder->file("guest.json");
  Result<Process> bench = Process::start_program(
      {"python3", "-B", tool, "--cairn", options.program, "--folder", folder->file(""), "--rounds",
       fmt::format("{}", options.rounds), "--seconds", fmt::format("{}", options.seconds),
       "--server-cpu", fmt::format("{}", options.server_cpu), "--client-cpu",
       fmt::format("{}", options.client_cpu)},
      -1, output);
  if (!bench) return fail(bench.error());
  const Result<Duration> ended = bench->wait();
  std::ifstream file(output);
  const json said = json::parse(file, nullptr, false);
  if (!said.is_object()) return fail(Errc::kIo, "the benchmark in a guest ended without a word");
  if (!ended) {
    report.skip("guest", said.value("problem", "it failed and does not say why"));
    return {};
  }
  std::vector<Row> rows;
  for (const json& each : said.value("rows", json::array())) rows.push_back(row_of(each));
  for (const Row& row : rows) add_line(row, report);
  add_ratios(rows, report);
  return {};
}

}  // namespace cairn::bench
