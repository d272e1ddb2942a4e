// SPDX-License-Identifier: Apache-2.0
// ServerContest: our server and qemu-storage-daemon's, which serve one file to the same jobs in
// turn, each pinned to one CPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "bench/contest.h"
#include "bench/drive/drive_bench.h"
#include "bench/drive/file_server.h"
#include "bench/drive/server_process.h"
#include "bench/report.h"
#include "bench/temporary_folder.h"

namespace cairn::bench {

inline constexpr uint64_t kServedFileSize = 256_MiB;

// What the clients of a server were answered, and how long its processor worked for that.
struct JobFigures {
  double requests = 0;
  double per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
  Duration server_cpu;
};

class ServerContest {
 public:
  // Carries a job by a server that accepts connections at `socket`.
  using CarryJob =
      std::function<Result<JobFigures>(const ServerProcess& server, const std::string& socket)>;

  // Both are lent to it.
  ServerContest(const DriveBenchOptions& options, const TemporaryFolder& folder)
      : options_(options), folder_(folder) {}

  // `name` is of the job's lines. `direct`: past the page cache.
  void add(const std::string& name, ServeCommand command, bool direct, CarryJob carry);
  // In each round every server carries every job once. kIo: a job failed, or a server did.
  Result<void> run();
  // Lines have IO/s and, as extras, requests per CPU second of the server, which is what ratios
  // compare: NAME_per_cpu_vs_qsd for each job, ours against qemu's better way of I/O, and `mean`,
  // the geometric mean of the jobs.
  void report_to(Report& report, const std::string& mean) const;

 private:
  Result<JobFigures> measure(FileServer server, ServeCommand command, bool direct,
                             const CarryJob& carry) const;

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  std::vector<std::string> jobs_;
  ContestOf<JobFigures> contest_;
};

}  // namespace cairn::bench
