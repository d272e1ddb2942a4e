// SPDX-License-Identifier: Apache-2.0
// How fast a volume over several modelled drives is, and how long its requests take, next to one
// such drive and to a stripe.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "bench/contest.h"
#include "bench/volume/subject.h"
#include "bench/volume/volume_bench.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

using loadgen::DriveLoad;
using loadgen::LoadResult;
using task::Task;
using SpeedContest = ContestOf<LoadResult>;

constexpr uint64_t kUsedOfEach = 256_MiB;
constexpr uint64_t kDriveBytes = 6_GiB;
constexpr size_t kDrives = 4;
constexpr uint32_t kDepthOfEach = 16;  // large requests, for each drive
constexpr uint32_t kDepth = 16;        // small ones, whatever the drives
constexpr double kPacedRate = 500;     // per second: less than one drive programs

struct Load {
  std::string_view name;
  DriveLoad load;
  bool is_large = false;  // its depth grows with the drives
};
constexpr std::array kLoads = {
    Load{"read1m", {.read_share = 1, .request_size = 1_MiB}, true},
    Load{"write1m", {.read_share = 0, .request_size = 1_MiB}, true},
    Load{"read4k", {.read_share = 1, .depth = kDepth}},
    Load{"write4k", {.read_share = 0, .depth = kDepth}},
    Load{"write4k_paced", {.read_share = 0, .depth = kDepth, .rate = kPacedRate}},
};

struct Contender {
  std::string_view name;
  Layout layout = Layout::kVolume;
  size_t drives = kDrives;
  uint32_t replicas = 1;
  bool only_large = false;
};
constexpr std::array kContenders = {
    Contender{"plain", Layout::kPlain, 1},
    Contender{"stripe", Layout::kStripe},
    Contender{"evol"},
    Contender{"r3", Layout::kVolume, kDrives, 3},
    Contender{"evol_n1", Layout::kVolume, 1, 1, true},
    Contender{"evol_n2", Layout::kVolume, 2, 1, true},
    Contender{"evol_n8", Layout::kVolume, 8, 1, true},
};

double bytes_per_second(const LoadResult& one) { return one.bytes_per_second(); }
double per_second(const LoadResult& one) { return one.per_second; }
double p50(const LoadResult& one) { return static_cast<double>(one.latency_ns().p50()); }
double p99(const LoadResult& one) { return static_cast<double>(one.latency_ns().p99()); }

class SpeedBench {
 public:
  SpeedBench(const VolumeBenchOptions& options, bool is_simulated)
      : options_(options), is_simulated_(is_simulated) {
    for (const Load& load : kLoads) {
      for (const Contender& each : kContenders) {
        if (each.only_large && !load.is_large) continue;
        contest_.add(std::string(load.name), std::string(each.name),
                     [this, load, each] { return run_one(load, each); });
      }
    }
  }

  Result<void> run(Report& report) {
    const Result<void> ran = contest_.run(options_.rounds, options_.progress);
    if (!ran) return ran;
    put_results(report);
    return {};
  }

 private:
  SubjectArgs args_of(const Contender& contender) const {
    return {.layout = contender.layout,
            .drives = contender.drives,
            .replicas = contender.replicas,
            .bytes = kUsedOfEach * contender.drives / contender.replicas / 1_MiB * 1_MiB,
            .drive_bytes = kDriveBytes,
            .flash = options_.flash};
  }
  // Each round draws other places; in a simulation they are the same ones in every run.
  DriveLoad load_of(const Load& load, const Contender& contender) const {
    DriveLoad all = load.load;
    if (load.is_large) all.depth = kDepthOfEach * static_cast<uint32_t>(contender.drives);
    all.warm_up = Duration::from_seconds(options_.seconds / 2);
    all.duration = Duration::from_seconds(options_.seconds);
    all.seed = runs_ / contest_.contestants().size() + 1;
    if (!is_simulated_) all.clock = &now;
    return all;
  }

  Result<LoadResult> run_one(const Load& load, const Contender& contender) {
    Result<LoadResult> result = fail(Errc::kCancelled, "the load did not run");
    const SubjectArgs args = args_of(contender);
    const DriveLoad all = load_of(load, contender);
    ++runs_;
    const Body body = [&](env::Env& env) { return run_load_on(env, args, all, result); };
    if (is_simulated_) {
      run_simulated(body);
    } else if (const Result<void> ran = run_in_world(options_.world, body); !ran) {
      return fail(ran.error());
    }
    return result;
  }
  static Task<void> run_load_on(env::Env& env, SubjectArgs args, DriveLoad load,
                                Result<LoadResult>& result) {
    Result<std::unique_ptr<Subject>> subject = co_await Subject::open(env, std::move(args));
    if (!subject) {
      result = fail(subject.error());
      co_return;
    }
    result = co_await (*subject)->run(load);
    co_await (*subject)->close();
  }

  void put_ratio(Report& report, const std::string& name, SpeedContest::Side one,
                 SpeedContest::Side other, const SpeedContest::Value& value) const {
    const std::optional<double> ratio = contest_.ratio(one, other, value);
    if (!ratio) return;
    if (is_simulated_) {
      report.add_simulated_ratio(name, *ratio);
    } else {
      report.add_ratio(name + "_live", *ratio);
    }
  }

  void put_results(Report& report) const {
    for (const SpeedContest::Contestant& each : contest_.contestants()) {
      Measurement line = each.line("requests/s", &per_second);
      line.add_latency(all_latencies(each));
      line.is_simulated = is_simulated_;
      report.add(std::move(line));
    }
    for (const Contender& each : kContenders) {
      if (each.layout != Layout::kVolume || each.replicas != 1) continue;
      const std::string suffix = each.drives == kDrives ? "" : fmt::format("_n{}", each.drives);
      put_ratio(report, "evol_read_vs_one_drive" + suffix, {"read1m", each.name},
                {"read1m", "plain"}, &bytes_per_second);
      put_ratio(report, "evol_write_vs_one_drive" + suffix, {"write1m", each.name},
                {"write1m", "plain"}, &bytes_per_second);
    }
    put_ratio(report, "evol_p50_vs_plain", {"read4k", "evol"}, {"read4k", "plain"}, &p50);
    put_ratio(report, "evol_p99_vs_plain", {"read4k", "evol"}, {"read4k", "plain"}, &p99);
    put_ratio(report, "evol_write_p50_vs_plain", {"write4k", "evol"}, {"write4k", "plain"}, &p50);
    put_ratio(report, "evol_write_p99_vs_plain", {"write4k", "evol"}, {"write4k", "plain"}, &p99);
    for (const std::string_view load : {"read1m", "write1m", "read4k", "write4k"}) {
      put_ratio(report, fmt::format("evol_vs_stripe_{}", load), {load, "evol"}, {load, "stripe"},
                &per_second);
    }
    put_ratio(report, "r3_read_vs_r1", {"read4k", "r3"}, {"read4k", "evol"}, &p50);
  }
  static Histogram all_latencies(const SpeedContest::Contestant& contestant) {
    Histogram all;
    for (const LoadResult& each : contestant.rounds) all.merge(each.latency_ns());
    return all;
  }

  const VolumeBenchOptions& options_;
  const bool is_simulated_;
  SpeedContest contest_;
  size_t runs_ = 0;
};

}  // namespace

Result<void> bench_volume_speed(const VolumeBenchOptions& options, Report& report) {
  return SpeedBench(options, true).run(report);
}

Result<void> bench_volume_live(const VolumeBenchOptions& options, Report& report) {
  return SpeedBench(options, false).run(report);
}

}  // namespace cairn::bench
