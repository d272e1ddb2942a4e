// SPDX-License-Identifier: Apache-2.0
// What a request costs in a volume, over drives in memory.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/volume/subject.h"
#include "bench/volume/volume_bench.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

using task::Task;

constexpr uint32_t kDepth = 32;
constexpr size_t kDrives = 4;
// One plain drive holds all of it, each of four only a part: what is read lies as far apart.
constexpr uint64_t kRange = 64_MiB;
constexpr uint64_t kDriveBytes = 160_MiB;
constexpr double kRequestsPerSecond = 500'000;  // about: how many make up a run
constexpr double kNanosPerMicro = 1e3;

struct Contender {
  const char* name;
  SubjectArgs args;
  std::unique_ptr<Subject> subject = nullptr;
  Measurement reads = {};   // CPU ns of one
  Measurement writes = {};  // the same
};

class CostBench {
 public:
  CostBench(const VolumeBenchOptions& options, Report& report)
      : options_(options), report_(report) {
    const auto add = [&](const char* name, Layout layout, size_t drives, uint32_t replicas,
                         bool is_steered = false) {
      contenders_.push_back({.name = name,
                             .args = {.layout = layout,
                                      .drives = drives,
                                      .replicas = replicas,
                                      .bytes = kRange,
                                      .drive_bytes = kDriveBytes,
                                      .is_steered = is_steered}});
    };
    add("plain", Layout::kPlain, 1, 1);
    add("stripe", Layout::kStripe, kDrives, 1);
    add("evol", Layout::kVolume, kDrives, 1);
    add("steered", Layout::kVolume, kDrives, 1, true);
    add("r3", Layout::kVolume, kDrives, 3);
  }

  Task<void> run(env::Env& env, Result<void>& done) {
    done = co_await begin(env);
    for (int round = 0; done && round < options_.rounds; ++round) {
      if (options_.progress) {
        options_.progress(fmt::format("cost: round {} of {}", round + 1, options_.rounds));
      }
      ++seed_;
      for (Contender& each : contenders_) {
        if (done) done = co_await measure(*each.subject, 1, each.reads);
        if (done) done = co_await measure(*each.subject, 0, each.writes);
      }
    }
    for (Contender& each : contenders_) {
      if (each.subject != nullptr) co_await each.subject->close();
      each.subject.reset();
    }
    if (done) put_results();
  }

 private:
  Task<Result<void>> begin(env::Env& env) {
    for (Contender& each : contenders_) {
      Result<std::unique_ptr<Subject>> opened = co_await Subject::open(env, each.args);
      if (!opened) co_return fail(opened.error());
      each.subject = std::move(*opened);
    }
    co_return Result<void>();
  }

  Task<Result<void>> measure(Subject& subject, double read_share, Measurement& into) {
    const auto requests =
        std::max<uint64_t>(1000, static_cast<uint64_t>(options_.seconds * kRequestsPerSecond));
    const Duration before = cpu_time();
    const Result<loadgen::LoadResult> ran = co_await subject.run({.read_share = read_share,
                                                                  .depth = kDepth,
                                                                  .duration = 3600_s,
                                                                  .requests_max = requests,
                                                                  .seed = seed_});
    if (!ran) co_return fail(ran.error());
    const Duration used = cpu_time() - before;
    into.samples.push_back(used.us() * kNanosPerMicro / static_cast<double>(requests));
    co_return Result<void>();
  }

  void put_results() {
    const Contender& plain = contenders_.front();
    for (Contender& each : contenders_) {
      if (&each != &plain) {
        report_.add_ratio(fmt::format("{}_cpu_per_io_vs_plain", each.name),
                          std::max(paired_ratio(each.reads, plain.reads),
                                   paired_ratio(each.writes, plain.writes)));
      }
    }
    for (Contender& each : contenders_) {
      each.reads.name = "cost_read4k";
      each.writes.name = "cost_write4k";
      for (Measurement* line : {&each.reads, &each.writes}) {
        line->variant = each.name;
        line->unit = "CPU ns";
        report_.add(std::move(*line));
      }
    }
  }

  const VolumeBenchOptions& options_;
  Report& report_;
  std::vector<Contender> contenders_;
  uint64_t seed_ = 0;
};

}  // namespace

Result<void> bench_volume_cost(const VolumeBenchOptions& options, Report& report) {
  CostBench bench(options, report);
  Result<void> done;
  const Result<void> ran =
      run_in_world(options.world, [&](env::Env& env) { return bench.run(env, done); });
  return ran ? done : ran;
}

}  // namespace cairn::bench
