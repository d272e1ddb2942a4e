// SPDX-License-Identifier: Apache-2.0
#include "bench/live_drive.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/contest.h"
#include "bench/workload.h"
#include "drive/modelled_medium.h"
#include "drive/source.h"
#include "loadgen/drive_load.h"
#include "world/sim/cluster.h"

namespace cairn::bench {

namespace {

struct Job {
  std::string_view name;
  loadgen::DriveLoad load;
  bool fresh = false;  // on a drive that nobody has written
};

constexpr uint64_t kDriveBytes = 1_GiB;
// What is used of it. It is written first, unless the job wants a fresh drive: a mapping that was
// never used is read first, and how many are is a matter of how long the warm-up takes.
constexpr uint64_t kRange = 64_MiB;
constexpr uint64_t kFillSize = 128_KiB;
constexpr loadgen::DriveLoad kFill = {.order = loadgen::DriveLoad::Order::kSequential,
                                      .read_share = 0,
                                      .request_size = kFillSize,
                                      .depth = 8,
                                      .length = kRange,
                                      .duration = 60_s,
                                      .requests_max = kRange / kFillSize};

// What a drive of a few thousand to a few ten thousand requests a second is asked in practice.
constexpr std::array<Job, 6> kJobs = {{
    {"randread4k_qd1", {.read_share = 1, .depth = 1}},
    {"randread4k_qd16", {.read_share = 1, .depth = 16}},
    {"randwrite4k_qd4", {.read_share = 0, .depth = 4}},
    {"randrw70_4k_qd8", {.read_share = 0.7, .depth = 8}},
    {"fresh_randwrite4k_qd4", {.read_share = 0, .depth = 4}, true},
    {"seqread64k_qd4",
     {.order = loadgen::DriveLoad::Order::kSequential, .request_size = 64_KiB, .depth = 4}},
}};

// Opens a new drive, runs the job and closes it.
task::Task<void> run_job(env::Env& env, std::shared_ptr<const flash::Parameters> parameters,
                         Job job, Result<loadgen::LoadResult>& result, Histogram& lateness) {
  drive::Spec spec;
  spec.kind = drive::Spec::Kind::kFlash;
  spec.size = kDriveBytes;
  spec.flash = std::move(parameters);
  Result<std::unique_ptr<drive::Source>> source = drive::Source::make(env, spec);
  if (!source) {
    result = fail(source.error());
    co_return;
  }
  Result<std::unique_ptr<drive::Drive>> drive = (*source)->open(env);
  if (!drive) {
    result = fail(drive.error());
    co_return;
  }
  if (!job.fresh) result = co_await loadgen::run_load(env, **drive, kFill);
  if (job.fresh || result) result = co_await loadgen::run_load(env, **drive, job.load);
  co_await (*drive)->close();
  lateness = (*source)->modelled()->lateness();
}

Result<loadgen::LoadResult> run_live(const LiveDriveOptions& options, Job job,
                                     Histogram& lateness) {
  Result<std::unique_ptr<env::World>> world = options.world({});
  if (!world) return fail(world.error());
  job.load.clock = &now;
  Result<loadgen::LoadResult> result = fail(Errc::kCancelled, "the job did not run");
  const Result<void> ran = (*world)->run(
      [&](env::Env& env) { return run_job(env, options.drive, job, result, lateness); });
  if (!ran) return fail(ran.error());
  if (result && result->error) return fail(*result->error);
  return result;
}

Result<loadgen::LoadResult> run_simulated(const LiveDriveOptions& options, const Job& job) {
  sim::Cluster cluster({.seed = 1});
  Result<loadgen::LoadResult> result = fail(Errc::kCancelled, "the job did not run");
  Histogram lateness;  // nobody is, here
  sim::Node& host = cluster.node("host");
  host.start([&](env::Env& env) { return run_job(env, options.drive, job, result, lateness); });
  while (host.is_running()) cluster.run_for(100_ms);
  return result;
}

// How much of the time this machine takes away from a core that does nothing but look at the
// clock, in pauses of more than 10 us: no timer here is better than that.
double share_taken_away() {
  constexpr Duration kLook = 200_ms;
  constexpr Duration kPause = 10_us;
  const Time start = now();
  Time last = start;
  Duration taken{0};
  while (last - start < kLook) {
    const Time next = now();
    if (next - last > kPause) taken = taken + (next - last);
    last = next;
  }
  return taken.seconds() / (last - start).seconds();
}

double difference(double one, double other) {
  return other == 0 ? 1 : std::abs(one - other) / other;
}

}  // namespace

Result<void> bench_live_drive(const LiveDriveOptions& options, Report& report) {
  double worst = 0;
  Measurement taken{.name = "time_taken_away", .unit = "part"};
  for (Job job : kJobs) {
    taken.samples.push_back(share_taken_away());
    job.load.length = job.fresh ? kDriveBytes : kRange;
    job.load.warm_up = Duration::from_seconds(options.seconds / 4);
    job.load.duration = Duration::from_seconds(options.seconds);
    const Result<loadgen::LoadResult> simulated = run_simulated(options, job);
    if (!simulated) return fail(simulated.error());
    Histogram lateness;
    ContestOf<loadgen::LoadResult> contest;
    contest.add(std::string(job.name), "live", [&] { return run_live(options, job, lateness); });
    if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
    const auto& rounds = contest.contestants().front();
    Measurement live = rounds.line("requests/s", &loadgen::LoadResult::per_second);
    const double tail = std::ranges::min(rounds.values([](const loadgen::LoadResult& one) {
      return static_cast<double>(one.latency_ns().p99());
    }));
    const auto simulated_tail = static_cast<double>(simulated->latency_ns().p99());
    Measurement virtual_time{.name = std::string(job.name),
                             .variant = "simulated",
                             .unit = "requests/s",
                             .samples = {simulated->per_second}};
    constexpr double kNanosPerMicro = 1e3;
    live.extras = {{"p99_us", tail / kNanosPerMicro},
                   {"late_p50_us", static_cast<double>(lateness.p50()) / kNanosPerMicro},
                   {"late_p99_us", static_cast<double>(lateness.p99()) / kNanosPerMicro}};
    virtual_time.extras = {{"p99_us", simulated_tail / kNanosPerMicro}};
    worst = std::max(
        {worst, difference(live.value(), simulated->per_second), difference(tail, simulated_tail)});
    report.add(std::move(live));
    virtual_time.is_simulated = true;
    report.add(std::move(virtual_time));
  }
  report.add(std::move(taken));
  report.add_ratio("live_vs_sim_error", worst);
  return {};
}

}  // namespace cairn::bench
