// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/vhost_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bench/drive/server_process.h"
#include "bench/drive/vhost_load.h"
#include "bench/drive/vhost_server.h"
#include "bench/served_file.h"
#include "bench/temporary_folder.h"

namespace cairn::bench {

namespace {

constexpr uint64_t kFileSize = 256_MiB;
constexpr std::string_view kMissing = "install qemu-storage-daemon (Debian: qemu-system-common)";

struct Job {
  const char* name;
  double read_share;
  uint32_t depth;
  uint64_t request_size = 4_KiB;
  bool sequential = false;
};
constexpr std::array<Job, 5> kJobs = {{{"randread4k_qd1", 1, 1},
                                       {"randread4k_qd32", 1, 32},
                                       {"randwrite4k_qd32", 0, 32},
                                       {"mixed4k_qd32", 0.7, 32},
                                       {"read128k_qd8", 1, 8, 128_KiB, true}}};

struct Figures {
  double per_second = 0;
  double per_cpu_second = 0;
  double p50_us = 0;
  double p99_us = 0;
};

struct Contestant {
  const Job* job;
  VhostServerKind server;
  std::vector<Figures> rounds = {};

  Measurement of(double Figures::* value) const {
    Measurement line{.name = fmt::format("vhost_{}", job->name),
                     .variant = std::string(name_of(server)),
                     .unit = "IO/s"};
    for (const Figures& figures : rounds) line.samples.push_back(figures.*value);
    return line;
  }
};

class VhostContest {
 public:
  VhostContest(const DriveBenchOptions& options, const TemporaryFolder& folder)
      : options_(options), folder_(folder) {}

  Result<void> run(Report& report) {
    if (const Result<void> made = make_served_file(folder_.file("drive"), kFileSize); !made) {
      return made;
    }
    for (const Job& job : kJobs) {
      for (const VhostServerKind server : kVhostServers) contestants_.push_back({&job, server});
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (Contestant& each : contestants_) {
        if (options_.progress) {
          options_.progress(fmt::format("vhost-user: round {} of {}: {} {}", round + 1,
                                        options_.rounds, each.job->name, name_of(each.server)));
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
  Result<Figures> measure(const Contestant& each) const {
    const VhostService service{.program = options_.program,
                               .file = folder_.file("drive"),
                               .socket = folder_.file("socket"),
                               .cpu = options_.server_cpu};
    if (const Result<void> clean = write_back(service.file); !clean) return fail(clean.error());
    std::filesystem::remove(service.socket);
    const auto server = ServerProcess::start(vhost_command(each.server, service), service.socket,
                                             options_.server_cpu);
    if (!server) return fail(server.error());
    Duration before{0};
    Duration after{0};
    const VhostLoad load{
        .at = {.family = env::Address::Family::kLocal, .path = service.socket},
        .read_share = each.job->read_share,
        .request_size = each.job->request_size,
        .depth = each.job->depth,
        .sequential = each.job->sequential,
        .size = kFileSize,
        .duration = Duration::from_seconds(options_.seconds),
        .on_answer = {},
        .watch = {.begins = [&] { before = (*server)->cpu_time(); },
                  .ended = [&] { after = (*server)->cpu_time(); }},
    };
    const Result<VhostLoadResult> done =
        run_vhost_load_on(options_.world, options_.client_cpu, load);
    if (!done) return fail(done.error());
    const double spent = std::max((after - before).seconds(), 1e-6);
    return Figures{.per_second = done->per_second,
                   .per_cpu_second = static_cast<double>(done->requests) / spent,
                   .p50_us = static_cast<double>(done->latency_ns.p50()) * 1e-3,
                   .p99_us = static_cast<double>(done->latency_ns.p99()) * 1e-3};
  }

  void put_results(Report& report) const {
    double product = 1;
    for (size_t i = 0; i < contestants_.size(); i += kVhostServers.size()) {
      const Contestant* ours = &contestants_[i];
      std::vector<Measurement> spent;
      for (size_t k = 0; k < kVhostServers.size(); ++k) {
        Measurement line = ours[k].of(&Figures::per_second);
        spent.push_back(ours[k].of(&Figures::per_cpu_second));
        line.extras = {{"io_per_cpu_second", spent.back().value()},
                       {"p50_us", ours[k].of(&Figures::p50_us).value()},
                       {"p99_us", ours[k].of(&Figures::p99_us).value()}};
        report.add(std::move(line));
      }
      const double ratio =
          std::min(paired_ratio(spent[0], spent[1]), paired_ratio(spent[0], spent[2]));
      report.add_ratio(fmt::format("vhost_{}_per_cpu_vs_qsd", ours->job->name), ratio);
      product *= ratio;
    }
    report.add_ratio("vhost_driver_iops_per_cpu_vs_qsd",
                     std::pow(product, 1 / static_cast<double>(kJobs.size())));
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  std::vector<Contestant> contestants_;
};

}  // namespace

Result<void> bench_vhost(const DriveBenchOptions& options, Report& report) {
  if (!has_program("qemu-storage-daemon")) {
    report.skip("vhost", std::string(kMissing));
    return {};
  }
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  return VhostContest(options, *folder).run(report);
}

}  // namespace cairn::bench
