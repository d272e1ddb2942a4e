// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/nbd_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "bench/contest.h"
#include "bench/drive/server_contest.h"
#include "bench/drive/server_process.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

constexpr std::string_view kMissing =
    "install fio and qemu-storage-daemon (Debian: fio, qemu-system-common)";
constexpr uint32_t kIdleDrives = 200;

struct Job {
  bool writes = false;
  bool direct = false;
  int connections = 1;

  std::string name() const {
    return fmt::format("nbd_{}4k_qd32{}{}", writes ? "randwrite" : "randread",
                       connections > 1 ? fmt::format("_conn{}", connections) : "",
                       direct ? "" : "_cached");
  }
};

std::vector<Job> all_jobs() {
  std::vector<Job> jobs;
  for (const bool direct : {true, false}) {
    for (const int connections : {1, 4}) {
      for (const bool writes : {false, true}) jobs.push_back({writes, direct, connections});
    }
  }
  return jobs;
}

Result<void> run_fio(const Job& job, const DriveBenchOptions& options, const std::string& socket,
                     const std::string& output) {
  const std::vector<std::string> args = {
      "fio",
      "--name=job",
      "--ioengine=nbd",
      fmt::format("--uri=nbd+unix:///d0?socket={}", socket),
      job.writes ? "--rw=randwrite" : "--rw=randread",
      "--bs=4k",
      "--iodepth=32",
      fmt::format("--size={}", kServedFileSize),
      "--time_based",
      fmt::format("--runtime={}ms", static_cast<int>(options.seconds * 1e3)),
      fmt::format("--numjobs={}", job.connections),
      "--group_reporting",
      "--thread",
      "--output-format=json",
      fmt::format("--output={}", output)};
  Result<Process> fio = Process::start_program(args, options.client_cpu);
  if (!fio) return fail(fio.error());
  if (const Result<Duration> ended = fio->wait(); !ended) {
    return fail(Errc::kIo, "fio failed on a drive over NBD");
  }
  return {};
}

Result<JobFigures> read_figures(const Job& job, const std::string& output) {
  // fio's engine says a word before the object.
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  const std::string said = text.str();
  const size_t begin = std::min(said.find('{'), said.size());
  const auto report = nlohmann::json::parse(said.substr(begin), nullptr, false);
  const char* side = job.writes ? "/jobs/0/write" : "/jobs/0/read";
  const auto number = [&](std::string_view path) {
    const nlohmann::json::json_pointer at(fmt::format("{}{}", side, path));
    return report.contains(at) && report.at(at).is_number() ? report.at(at).get<double>() : 0;
  };
  const double requests = number("/total_ios");
  if (requests == 0) return fail(Errc::kIo, "fio did no request over NBD: give it more seconds");
  return JobFigures{.requests = requests,
                    .per_second = number("/iops"),
                    .p50_us = number("/clat_ns/percentile/50.000000") * 1e-3,
                    .p99_us = number("/clat_ns/percentile/99.000000") * 1e-3};
}

Result<JobFigures> carry(const Job& job, const DriveBenchOptions& options,
                         const ServerProcess& server, const std::string& socket,
                         const std::string& output) {
  const Duration before = server.cpu_time();
  if (const Result<void> ran = run_fio(job, options, socket, output); !ran) {
    return fail(ran.error());
  }
  const Duration spent = server.cpu_time() - before;
  Result<JobFigures> figures = read_figures(job, output);
  if (figures) figures->server_cpu = spent;
  return figures;
}

}  // namespace

Result<void> bench_nbd(const DriveBenchOptions& options, Report& report) {
  if (!has_program("fio") || !has_program("qemu-storage-daemon")) {
    report.skip("nbd", std::string(kMissing));
    return {};
  }
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  ServerContest contest(options, *folder);
  for (const Job& job : all_jobs()) {
    contest.add(job.name(), &nbd_command, job.direct,
                [&options, job, output = folder->file("fio.json")](const ServerProcess& server,
                                                                   const std::string& socket) {
                  return carry(job, options, server, socket, output);
                });
  }
  if (const Result<void> ran = contest.run(); !ran) return ran;
  contest.report_to(report, "nbd_iops_per_cpu_vs_qsd");
  return {};
}

Result<void> bench_idle_drives(const DriveBenchOptions& options, Report& report) {
  Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  const std::string socket = folder->file("socket");
  std::vector<std::string> command = {options.program, "serve"};
  for (uint32_t i = 0; i < kIdleDrives; ++i) command.push_back(fmt::format("d{}=mem:size=16M", i));
  for (const std::string& word : {std::string("--nbd"), "unix:" + socket, std::string("--cores"),
                                  fmt::format("{}", options.server_cpu)}) {
    command.push_back(word);
  }
  const auto server = ServerProcess::start(command, socket, options.server_cpu);
  if (!server) return fail(server.error());
  ContestOf<double> contest;
  contest.add("idle", "200 drives", [&]() -> Result<double> {
    const Time start = now();
    const Duration before = (*server)->cpu_time();
    pass_time(Duration::from_seconds(options.seconds * 4));
    return ((*server)->cpu_time() - before).seconds() / (now() - start).seconds();
  });
  if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
  Measurement idle = contest.contestants().front().line("cores", std::identity());
  const double worst = *std::ranges::max_element(idle.samples);
  report.add(std::move(idle));
  report.add_ratio("idle_cores_200_drives", worst);
  return {};
}

}  // namespace cairn::bench
