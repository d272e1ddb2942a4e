// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/vfio_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

struct Way {
  Measurement iops;
  std::vector<double> p99_us;
  std::vector<double> p999_us;

  void add(double per_second, const Histogram& latency_ns) {
    iops.samples.push_back(per_second);
    p99_us.push_back(static_cast<double>(latency_ns.p99()) * 1e-3);
    p999_us.push_back(static_cast<double>(latency_ns.p999()) * 1e-3);
    iops.extras = {{"p50_us", static_cast<double>(latency_ns.p50()) * 1e-3},
                   {"p99_us", median(p99_us)},
                   {"p999_us", median(p999_us)}};
  }
};

struct Contest {
  const Medium* medium;
  const Job* job;
  Way guest;
  Way bare;
  Way crowded;  // the bare drive, with the other CPU as busy as a guest's driver keeps it
};

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

double ratio_of(const std::vector<double>& one, const std::vector<double>& other) {
  return paired_ratio({.samples = one}, {.samples = other});
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
        contests_.push_back(
            {.medium = &medium, .job = &job, .guest = {}, .bare = {}, .crowded = {}});
      }
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (Contest& contest : contests_) {
        if (options_.progress) {
          options_.progress(fmt::format("vfio-user: round {} of {}: {} {} at {}", round + 1,
                                        options_.rounds, contest.medium->name, contest.job->name,
                                        contest.job->depth));
        }
        if (const Result<void> done = measure_bare(contest, contest.bare); !done) return done;
        if (const Result<void> done = measure_crowded(contest); !done) return done;
        if (const Result<void> done = measure_guest(contest); !done) return done;
      }
    }
    put_results(report);
    return {};
  }

 private:
  Duration length() const { return Duration::from_seconds(options_.seconds); }

  // The drive itself, on the core that serves it otherwise.
  Result<void> measure_bare(const Contest& contest, Way& way) {
    Result<std::unique_ptr<env::World>> world =
        options_.world({.cpus = {options_.server_cpu}, .poll = true});
    if (!world) return fail(world.error());
    Result<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return load_drive(env, contest, way, outcome); });
    return ran ? outcome : ran;
  }
  Result<void> measure_crowded(Contest& contest) {
    const Result<Process> spinning = start_spinning(options_.client_cpu);
    if (!spinning) return fail(spinning.error());
    return measure_bare(contest, contest.crowded);
  }
  task::Task<void> load_drive(env::Env& env, const Contest& contest, Way& way,
                              Result<void>& outcome) {
    drive::SourceLeaves leaves;
    drive::Opened drive = co_await drive::open_stack(env, contest.medium->leaf, leaves);
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
    const loadgen::DriveLoad load{.read_share = contest.job->read_share,
                                  .depth = contest.job->depth,
                                  .warm_up = 50_ms,
                                  .duration = length(),
                                  .clock = &now};
    const Result<loadgen::LoadResult> done = co_await loadgen::run_load(env, **drive, load);
    co_await (*drive)->close();
    if (!filled || !done || done->error) {
      outcome = fail(Errc::kIo, "a request to a drive of the benchmark failed");
      co_return;
    }
    way.add(done->per_second, done->latency_ns());
  }

  // The same drive in a process of its own, and a guest's driver here.
  Result<void> measure_guest(Contest& contest) {
    const std::string socket = folder_.file("vm.sock");
    std::filesystem::remove(socket);
    const std::vector<std::string> command = {
        options_.program, "drive",
        "serve",          contest.medium->leaf,
        "--vfio-user",    socket + ",mode=polling",
        "--control",      "off",
        "--cores",        fmt::format("{}", options_.server_cpu)};
    const auto server = ServerProcess::start(command, socket, options_.server_cpu);
    if (!server) return fail(server.error());
    const GuestLoad load{.at = {.family = env::Address::Family::kLocal, .path = socket},
                         .read_share = contest.job->read_share,
                         .depth = contest.job->depth,
                         .size = kDriveSize,
                         .duration = length()};
    const Result<GuestResult> result = run_guest_load_on(options_.world, options_.client_cpu, load);
    if (!result) return fail(result.error());
    contest.guest.add(result->per_second, result->latency_ns);
    return {};
  }

  void put_results(Report& report) {
    for (Contest& contest : contests_) {
      const std::string name =
          fmt::format("vfio_{}4k_qd{}_iops", contest.job->name, contest.job->depth);
      const std::string& medium = contest.medium->name;
      for (const auto& [way, suffix] : {std::pair(&contest.guest, ""),
                                        {&contest.bare, "_bare"},
                                        {&contest.crowded, "_bare_crowded"}}) {
        Measurement line = way->iops;
        line.name = name;
        line.variant = medium + suffix;
        line.unit = "IO/s";
        report.add(std::move(line));
      }
      if (contest.job->depth == kUsualDepth) put_ratios(contest, report);
    }
  }
  // Those of the file have the plain names: there the drive takes its time, as drives do.
  static void put_ratios(const Contest& contest, Report& report) {
    const bool reads = contest.job->read_share == 1;
    const std::string suffix = contest.medium->name == "file" ? "" : "_" + contest.medium->name;
    const Way& guest = contest.guest;
    for (const auto& [bare, base] :
         {std::pair(&contest.bare, "bare"), {&contest.crowded, "crowded"}}) {
      report.add_ratio(fmt::format("vfio_{}_iops_vs_{}{}", contest.job->name, base, suffix),
                       paired_ratio(guest.iops, bare->iops));
      if (!reads) continue;
      report.add_ratio(fmt::format("vfio_p99_vs_{}{}", base, suffix),
                       ratio_of(guest.p99_us, bare->p99_us));
      report.add_ratio(fmt::format("vfio_p999_vs_{}{}", base, suffix),
                       ratio_of(guest.p999_us, bare->p999_us));
    }
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  const std::array<Medium, 2> media_;
  std::vector<Contest> contests_;
};

}  // namespace

Result<void> bench_vfio(const DriveBenchOptions& options, Report& report) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  return VfioBench(options, *folder).run(report);
}

}  // namespace cairn::bench
