// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/vhost_contest.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "bench/drive/server_contest.h"
#include "bench/drive/server_process.h"
#include "bench/drive/vhost_load.h"
#include "bench/temporary_folder.h"

namespace cairn::bench {

namespace {

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

Result<JobFigures> carry(const Job& job, const DriveBenchOptions& options,
                         const ServerProcess& server, const std::string& socket) {
  Duration before{0};
  Duration after{0};
  const VhostLoad load{
      .at = {.family = env::Address::Family::kLocal, .path = socket},
      .read_share = job.read_share,
      .request_size = job.request_size,
      .depth = job.depth,
      .sequential = job.sequential,
      .size = kServedFileSize,
      .duration = Duration::from_seconds(options.seconds),
      .on_answer = {},
      .watch = {.begins = [&] { before = server.cpu_time(); },
                .ended = [&] { after = server.cpu_time(); }},
  };
  const Result<VhostLoadResult> done = run_vhost_load_on(options.world, options.client_cpu, load);
  if (!done) return fail(done.error());
  return JobFigures{.requests = static_cast<double>(done->requests),
                    .per_second = done->per_second,
                    .p50_us = static_cast<double>(done->latency_ns.p50()) * 1e-3,
                    .p99_us = static_cast<double>(done->latency_ns.p99()) * 1e-3,
                    .server_cpu = after - before};
}

}  // namespace

Result<void> bench_vhost(const DriveBenchOptions& options, Report& report) {
  if (!has_program("qemu-storage-daemon")) {
    report.skip("vhost", std::string(kMissing));
    return {};
  }
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  ServerContest contest(options, *folder);
  for (const Job& job : kJobs) {
    contest.add(fmt::format("vhost_{}", job.name), &vhost_command, true,
                [&options, &job](const ServerProcess& server, const std::string& socket) {
                  return carry(job, options, server, socket);
                });
  }
  if (const Result<void> ran = contest.run(); !ran) return ran;
  contest.report_to(report, "vhost_driver_iops_per_cpu_vs_qsd");
  return {};
}

}  // namespace cairn::bench
