// SPDX-License-Identifier: Apache-2.0
#include "bench/flash_speed.h"

#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "bench/contest.h"
#include "bench/cpu_clock.h"
#include "model/flash/precondition.h"

namespace cairn::bench {

namespace {

using flash::Completion;
using flash::FlashModel;
using flash::OnCompletion;
using flash::Parameters;
using flash::Synthetic;
using flash::SyntheticSource;
using flash::TimedRequest;

// Table I of the SNIS paper, 1 TiB of flash, as the reference's speed was measured.
Parameters table_one() {
  Parameters p;
  p.mqsim = true;
  p.gc_policy = flash::GcPolicy::kRga;
  p.gc_preemptible = false;
  p.page_bytes = 16384;
  p.read_ns.fill(2'000);
  p.program_ns.fill(100'000);
  return p;
}

struct Run {
  double seconds = 0;
  uint64_t requests = 0;
  double table_bytes = 0;
  double pool_bytes = 0;
};

template <class Load>
Run timed(FlashModel& model, const Load& load) {
  Run result;
  const double start = cpu_seconds();
  load([&](const Completion&) { ++result.requests; });
  result.seconds = cpu_seconds() - start;
  result.table_bytes = static_cast<double>(model.table_bytes());
  result.pool_bytes = static_cast<double>(model.pool_bytes());
  return result;
}

// Random 4 KiB in 16 GiB, reads and writes each 10 us apart on average. Drawn before: the reference
// replayed a trace.
Run small_requests() {
  FlashModel model(table_one());
  SyntheticSource source({.read_fraction = 0.5, .working_set = 0.0168, .requests = 400'000},
                         model.domains()[0].logical_sectors);
  constexpr double kMeanGap = 5'000;
  Rng gaps(1);
  std::vector<TimedRequest> requests;
  double arrival = 0;
  while (!source.exhausted()) {
    arrival += gaps.exponential(kMeanGap);
    requests.push_back({static_cast<flash::Nanos>(arrival), source.next()});
  }
  return timed(model,
               [&](const OnCompletion& done) { flash::run_open_loop(model, requests, done); });
}

// Random 8 KiB overwrite of a full drive.
Run collecting() {
  Parameters p = table_one();
  p.channels = 4;
  p.chips_per_channel = 2;
  p.blocks_per_plane = 512;
  p.page_bytes = 8192;
  p.read_ns.fill(75'000);
  p.program_ns.fill(750'000);
  FlashModel model(p);
  const Synthetic load{.read_fraction = 0,
                       .sectors = 16,
                       .alignment_sectors = 16,
                       .working_set = 0.85,
                       .requests = 200'000,
                       .queue_depth = 64};
  flash::precondition(model, load, 0.75);
  return timed(model, [&](const OnCompletion& done) { flash::run_synthetic(model, load, done); });
}

Run startup() {
  Parameters p = table_one();
  p.channels = 16;
  p.chips_per_channel = 8;
  p.blocks_per_plane = 512 * 1024 / 256;
  const double start = cpu_seconds();
  const FlashModel model(p);
  return {.seconds = cpu_seconds() - start};
}

// The reference's requests per processor second for such loads, least contended of three runs.
constexpr double kReferenceSmall = 73'601;
constexpr double kReferenceCollecting = 31'778;
constexpr double kReferenceStartupMs = 1'270;

}  // namespace

void bench_flash(const FlashSpeedOptions& options, Report& report) {
  ContestOf<Run> contest;
  contest.add("flash_4k", "", [] { return small_requests(); });
  contest.add("flash_gc", "", [] { return collecting(); });
  contest.add("startup_1tb", "", [] { return startup(); });
  const Result<void> ran = contest.run(options.rounds, options.progress);
  CHECK(ran.has_value(), "a model has no errors");
  const auto& runs = contest.contestants();
  const auto per_second = [](const Run& run) {
    return static_cast<double>(run.requests) / run.seconds;
  };
  Measurement small = runs[0].line("requests/s", per_second);
  const Run& first = runs[0].rounds.front();
  small.extras = {{"table_bytes_max", first.table_bytes}, {"pool_bytes", first.pool_bytes}};
  Measurement gc = runs[1].line("requests/s", per_second);
  Measurement startup = runs[2].line("ms", [](const Run& run) { return run.seconds * 1e3; });
  report.add_ratio("flash_4k_req_per_s", small.value());
  report.add_ratio("flash_gc_req_per_s", gc.value());
  report.add_ratio("startup_1tb_ms", startup.value());
  report.add_ratio("flash_4k_vs_mqsim", small.value() / kReferenceSmall);
  report.add_ratio("flash_gc_vs_mqsim", gc.value() / kReferenceCollecting);
  report.add_ratio("startup_1tb_vs_mqsim", startup.value() / kReferenceStartupMs);
  report.add(std::move(small));
  report.add(std::move(gc));
  report.add(std::move(startup));
}

}  // namespace cairn::bench
