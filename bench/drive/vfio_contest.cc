// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/vfio_contest.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/contest.h"
#include "bench/drive/guest_load.h"
#include "bench/drive/server_process.h"
#include "bench/process.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"
#include "loadgen/drive_load.h"
#include "stack/stack.h"

namespace cairn::bench {

namespace {

constexpr uint64_t kDriveSize = 256_MiB;
constexpr uint64_t kFillSize = 64_KiB;
constexpr double kMixedReads = 0.7;
constexpr uint32_t kUsualDepth = 32;
constexpr Duration kSpinMax = 3600_s;

struct Job {
  const char* name;
  double read_share;
  uint32_t depth;
};
constexpr std::array<Job, 4> kJobs = {{{"read", 1, 1},
                                       {"read", 1, kUsualDepth},
                                       {"read", 1, 128},
                                       {"mixed", kMixedReads, kUsualDepth}}};

// The drive that both ways lead to.
struct Medium {
  std::string name;
  std::string leaf;
};

// What the driver or the bare drive did in one round.
struct Figures {
  double per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
};

Figures figures_of(double per_second, const Histogram& latency_ns) {
  const auto us = [](uint64_t nanos) { return static_cast<double>(nanos) * 1e-3; };
  return {.per_second = per_second,
          .p50_us = us(latency_ns.p50()),
          .p99_us = us(latency_ns.p99()),
          .p999_us = us(latency_ns.p999())};
}

// Behind a medium's name: the drive alone, and with the other CPU as busy as a guest's driver keeps
// it.
constexpr const char* kBare = "_bare";
constexpr const char* kCrowded = "_bare_crowded";

std::string name_of(const Job& job) {
  return fmt::format("vfio_{}4k_qd{}_iops", job.name, job.depth);
}

// Keeps a CPU busy while it exists.
Result<Process> start_spinning(int cpu) {
  return Process::start([cpu]() -> Result<void> {
    if (const Result<void> pinned = pin_to(cpu); !pinned) return pinned;
    const Time end = now() + kSpinMax;
    while (now() < end) {
    }
    return {};
  });
}

class VfioBench {
 public:
  VfioBench(const DriveBenchOptions& options, const TemporaryFolder& folder)
      : options_(options),
        folder_(folder),
        media_({{"memory", fmt::format("mem:size={}", kDriveSize)},
                {"file", fmt::format("file:{},size={}", folder.file("drive"), kDriveSize)}}) {}

  Result<void> run(Report& report) {
    for (const Medium& medium : media_) {
      for (const Job& job : kJobs) {
        const std::string name = name_of(job);
        contest_.add(name, medium.name + kBare, [&] { return measure_bare(medium, job); });
        contest_.add(name, medium.name + kCrowded, [&] { return measure_crowded(medium, job); });
        contest_.add(name, medium.name, [&] { return measure_guest(medium, job); });
      }
    }
    if (const Result<void> ran = contest_.run(options_.rounds, options_.progress); !ran) return ran;
    put_results(report);
    return {};
  }

 private:
  Duration length() const { return Duration::from_seconds(options_.seconds); }

  // The drive itself, on the core that serves it otherwise.
  Result<Figures> measure_bare(const Medium& medium, const Job& job) const {
    Result<std::unique_ptr<env::World>> world =
        options_.world({.cpus = {options_.server_cpu}, .poll = true});
    if (!world) return fail(world.error());
    Result<Figures> outcome = fail(Errc::kCancelled, "the load did not run");
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return load_drive(env, medium, job, outcome); });
    if (!ran) return fail(ran.error());
    return outcome;
  }
  Result<Figures> measure_crowded(const Medium& medium, const Job& job) const {
    const Result<Process> spinning = start_spinning(options_.client_cpu);
    if (!spinning) return fail(spinning.error());
    return measure_bare(medium, job);
  }
  task::Task<void> load_drive(env::Env& env, const Medium& medium, const Job& job,
                              Result<Figures>& outcome) const {
    drive::SourceLeaves leaves;
    drive::Opened drive = co_await drive::open_stack(env, medium.leaf, leaves);
    if (!drive) {
      outcome = fail(Errc::kIo, "open a drive of the benchmark");
      co_return;
    }
    loadgen::DriveLoad fill{.order = loadgen::DriveLoad::Order::kSequential,
                            .read_share = 0,
                            .request_size = kFillSize,
                            .duration = 3600_s,
                            .requests_max = kDriveSize / kFillSize};
    const Result<loadgen::LoadResult> filled = co_await loadgen::run_load(env, **drive, fill);
    const loadgen::DriveLoad load{.read_share = job.read_share,
                                  .depth = job.depth,
                                  .warm_up = 50_ms,
                                  .duration = length(),
                                  .clock = &now};
    const Result<loadgen::LoadResult> done = co_await loadgen::run_load(env, **drive, load);
    co_await (*drive)->close();
    if (!filled || !done || done->error) {
      outcome = fail(Errc::kIo, "a request to a drive of the benchmark failed");
      co_return;
    }
    outcome = figures_of(done->per_second, done->latency_ns());
  }

  // The same drive in a process of its own, and a guest's driver here.
  Result<Figures> measure_guest(const Medium& medium, const Job& job) const {
    const std::string socket = folder_.file("vm.sock");
    std::filesystem::remove(socket);
    const std::vector<std::string> command = {options_.program,
                                              "serve",
                                              medium.leaf,
                                              "--vfio-user",
                                              socket + ",mode=polling",
                                              "--control",
                                              "off",
                                              "--cores",
                                              fmt::format("{}", options_.server_cpu)};
    const auto server = ServerProcess::start(command, socket, options_.server_cpu);
    if (!server) return fail(server.error());
    const GuestLoad load{.at = {.family = env::Address::Family::kLocal, .path = socket},
                         .read_share = job.read_share,
                         .depth = job.depth,
                         .size = kDriveSize,
                         .duration = length()};
    const Result<GuestResult> result = run_guest_load_on(options_.world, options_.client_cpu, load);
    if (!result) return fail(result.error());
    return figures_of(result->per_second, result->latency_ns);
  }

  void put_results(Report& report) const {
    for (const Medium& medium : media_) {
      for (const Job& job : kJobs) {
        for (const char* way : {"", kBare, kCrowded}) {
          const auto& each = *contest_.find(name_of(job), medium.name + way);
          Measurement line = each.line("IO/s", &Figures::per_second);
          line.extras = {{"p50_us", median(each.values(&Figures::p50_us))},
                         {"p99_us", median(each.values(&Figures::p99_us))},
                         {"p999_us", median(each.values(&Figures::p999_us))}};
          report.add(std::move(line));
        }
        if (job.depth == kUsualDepth) put_ratios(medium, job, report);
      }
    }
  }
  // Those of the file have the plain names: there the drive takes its time, as drives do.
  void put_ratios(const Medium& medium, const Job& job, Report& report) const {
    const std::string suffix = medium.name == "file" ? "" : "_" + medium.name;
    for (const auto& [way, base] : {std::pair(kBare, "bare"), {kCrowded, "crowded"}}) {
      const std::string load = name_of(job);
      const std::string bare = medium.name + way;
      const auto ratio = [&](double Figures::* value) {
        return contest_.ratio({load, medium.name}, {load, bare}, value).value_or(0);
      };
      report.add_ratio(fmt::format("vfio_{}_iops_vs_{}{}", job.name, base, suffix),
                       ratio(&Figures::per_second));
      if (job.read_share != 1) continue;
      report.add_ratio(fmt::format("vfio_p99_vs_{}{}", base, suffix), ratio(&Figures::p99_us));
      report.add_ratio(fmt::format("vfio_p999_vs_{}{}", base, suffix), ratio(&Figures::p999_us));
    }
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  const std::array<Medium, 2> media_;
  ContestOf<Figures> contest_;
};

}  // namespace

Result<void> bench_vfio(const DriveBenchOptions& options, Report& report) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  return VfioBench(options, *folder).run(report);
}

}  // namespace cairn::bench
