// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/nbd_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "bench/drive/nbd_server.h"
#include "bench/drive/server_process.h"
#include "bench/served_file.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

constexpr NbdServerKind kServers[] = {NbdServerKind::kCairn, NbdServerKind::kQemuUring,
                                      NbdServerKind::kQemuThreads};
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

struct Figures {
  double per_second = 0;
  double per_cpu_second = 0;
  double p50_us = 0;
  double p99_us = 0;
};

struct Contestant {
  Job job;
  NbdServerKind server = NbdServerKind::kCairn;
  std::vector<Figures> rounds = {};

  Measurement of(double Figures::* value, std::string unit) const {
    Measurement line{.name = job.name(), .variant = std::string(name_of(server))};
    line.unit = std::move(unit);
    for (const Figures& figures : rounds) line.samples.push_back(figures.*value);
    return line;
  }
};

class NbdContest {
 public:
  NbdContest(const DriveBenchOptions& options, TemporaryFolder& folder)
      : options_(options), folder_(folder) {}

  Result<void> run(Report& report) {
    if (const Result<void> made = make_served_file(folder_.file("drive"), kNbdFileSize); !made) {
      return made;
    }
    for (const Job& job : all_jobs()) {
      for (const NbdServerKind server : kServers) contestants_.push_back({job, server});
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (Contestant& each : contestants_) {
        if (options_.progress) {
          options_.progress(fmt::format("round {} of {}: {} {}", round + 1, options_.rounds,
                                        each.job.name(), name_of(each.server)));
        }
        const Result<Figures> figures = measure(each);
        if (!figures) return fail(figures.error());
        each.rounds.push_back(*figures);
      }
    }
    put_results(report);
    return {};
  }

 private:
  Result<Figures> measure(const Contestant& each) {
    const NbdService service{.program = options_.program,
                             .file = folder_.file("drive"),
                             .socket = folder_.file("socket"),
                             .direct = each.job.direct,
                             .cpu = options_.server_cpu};
    if (const Result<void> clean = write_back(service.file); !clean) return fail(clean.error());
    std::filesystem::remove(service.socket);
    const auto server = ServerProcess::start(nbd_command(each.server, service), service.socket,
                                             options_.server_cpu);
    if (!server) return fail(server.error());
    const Duration before = (*server)->cpu_time();
    if (const Result<void> ran = run_fio(each.job, service.socket); !ran) return fail(ran.error());
    return read_figures(each.job, (*server)->cpu_time() - before);
  }

  Result<void> run_fio(const Job& job, const std::string& socket) const {
    const std::vector<std::string> words = {
        "fio",
        "--name=job",
        "--ioengine=nbd",
        fmt::format("--uri=nbd+unix:///d0?socket={}", socket),
        job.writes ? "--rw=randwrite" : "--rw=randread",
        "--bs=4k",
        "--iodepth=32",
        fmt::format("--size={}", kNbdFileSize),
        "--time_based",
        fmt::format("--runtime={}ms", static_cast<int>(options_.seconds * 1e3)),
        fmt::format("--numjobs={}", job.connections),
        "--group_reporting",
        "--thread",
        "--output-format=json",
        fmt::format("--output={}", folder_.file("fio.json"))};
    Result<Process> fio = Process::start_program(words, options_.client_cpu);
    if (!fio) return fail(fio.error());
    if (const Result<Duration> ended = fio->wait(); !ended) {
      return fail(Errc::kIo, "fio failed on a drive over NBD");
    }
    return {};
  }

  Result<Figures> read_figures(const Job& job, Duration cpu) const {
    // fio's engine says a word before the object.
    std::ostringstream text;
    text << std::ifstream(folder_.file("fio.json")).rdbuf();
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
    return Figures{.per_second = number("/iops"),
                   .per_cpu_second = requests / std::max(cpu.seconds(), 1e-6),
                   .p50_us = number("/clat_ns/percentile/50.000000") * 1e-3,
                   .p99_us = number("/clat_ns/percentile/99.000000") * 1e-3};
  }

  void put_results(Report& report) const {
    double product = 1;
    size_t jobs = 0;
    for (size_t i = 0; i < contestants_.size(); i += std::size(kServers)) {
      const Contestant* ours = &contestants_[i];
      std::vector<Measurement> spent;
      for (size_t k = 0; k < std::size(kServers); ++k) {
        Measurement line = ours[k].of(&Figures::per_second, "IO/s");
        spent.push_back(ours[k].of(&Figures::per_cpu_second, ""));
        line.extras = {{"io_per_cpu_second", spent.back().value()},
                       {"p50_us", ours[k].of(&Figures::p50_us, "").value()},
                       {"p99_us", ours[k].of(&Figures::p99_us, "").value()}};
        report.add(std::move(line));
      }
      const double ratio =
          std::min(paired_ratio(spent[0], spent[1]), paired_ratio(spent[0], spent[2]));
      report.add_ratio(ours->job.name() + "_per_cpu_vs_qsd", ratio);
      product *= ratio;
      ++jobs;
    }
    report.add_ratio("nbd_iops_per_cpu_vs_qsd", std::pow(product, 1 / static_cast<double>(jobs)));
  }

  const DriveBenchOptions& options_;
  TemporaryFolder& folder_;
  std::vector<Contestant> contestants_;
};

}  // namespace

Result<void> bench_nbd(const DriveBenchOptions& options, Report& report) {
  if (!has_program("fio") || !has_program("qemu-storage-daemon")) {
    report.skip("nbd", std::string(kMissing));
    return {};
  }
  Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  return NbdContest(options, *folder).run(report);
}

Result<void> bench_idle_drives(const DriveBenchOptions& options, Report& report) {
  Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  const std::string socket = folder->file("socket");
  std::vector<std::string> command = {options.program, "drive", "serve"};
  for (uint32_t i = 0; i < kIdleDrives; ++i) command.push_back(fmt::format("d{}=mem:size=16M", i));
  for (const std::string& word : {std::string("--nbd"), "unix:" + socket, std::string("--cores"),
                                  fmt::format("{}", options.server_cpu)}) {
    command.push_back(word);
  }
  const auto server = ServerProcess::start(command, socket, options.server_cpu);
  if (!server) return fail(server.error());
  Measurement idle{.name = "idle", .variant = "200 drives", .unit = "cores"};
  for (int round = 0; round < options.rounds; ++round) {
    if (options.progress) options.progress("idle drives");
    const Time start = now();
    const Duration before = (*server)->cpu_time();
    pass_time(Duration::from_seconds(options.seconds * 4));
    idle.samples.push_back(((*server)->cpu_time() - before).seconds() / (now() - start).seconds());
  }
  const double worst = *std::ranges::max_element(idle.samples);
  report.add(std::move(idle));
  report.add_ratio("idle_cores_200_drives", worst);
  return {};
}

}  // namespace cairn::bench
