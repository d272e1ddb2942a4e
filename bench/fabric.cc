// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/bare_exchange.h"
#include "bench/box_process.h"
#include "bench/drive_load.h"
#include "bench/load_jobs.h"
#include "bench/raw_sockets.h"
#include "fabric/host/remote_drive.h"

namespace cairn::bench {

namespace {

struct LoadKind {
  std::string name;
  uint32_t request_size;
  bool writes;
};
const LoadKind kKinds[] = {{"read4k", 4096, false},
                           {"write4k", 4096, true},
                           {"read128k", 128 * 1024, false},
                           {"write128k", 128 * 1024, true}};
constexpr uint32_t kDepths[] = {1, 32, 128};

// How our host and box are set up, both alike.
struct Variant {
  std::string name;
  bool poll;
  fabric::DoorbellOptions::Mode batching;
  bool only_4k;  // the others say nothing about it
};
const Variant kVariants[] = {
    {"cairn", true, fabric::DoorbellOptions::Mode::kAdaptive, false},
    {"cairn_sleeping", false, fabric::DoorbellOptions::Mode::kAdaptive, false},
    {"fixed_sleeping", false, fabric::DoorbellOptions::Mode::kFixed, true},
    {"off_sleeping", false, fabric::DoorbellOptions::Mode::kOff, true},
};

// What one contestant did with one load.
using Figures = ExchangeFigures;

struct Contestant {
  std::string load_name;  // "read4k_qd32"
  std::string variant;    // "bare", or of kVariants
  std::function<Result<Figures>()> run;
  std::vector<double> per_second;
  std::vector<Figures> figures;
};

// A host in this process, the box in its own.
class CairnPair {
 public:
  static Result<std::unique_ptr<CairnPair>> start(const FabricOptions& options,
                                                  const Variant& variant) {
    Result<std::unique_ptr<BoxProcess>> box =
        BoxProcess::start({.world = options.world,
                           .cpu = options.box_cpu,
                           .poll = variant.poll,
                           .doorbell = {.mode = variant.batching},
                           .memory = options.memory});
    if (!box) return fail(box.error());
    auto pair = std::unique_ptr<CairnPair>(new CairnPair(options, variant, std::move(*box)));
    // Memory that was never written is one page of zeroes to the kernel, and always cached.
    DriveLoad fill{.order = DriveLoad::Order::kSequential,
                   .read_share = 0,
                   .request_size = 128_KiB,
                   .depth = 16,
                   .duration = 60_s};
    fill.requests_max = options.memory / fill.request_size;
    const Result<Figures> filled = pair->carry(fill);
    if (!filled) return fail(filled.error());
    return pair;
  }

  Result<Figures> carry(const LoadKind& kind, uint32_t depth) {
    DriveLoad load{.read_share = kind.writes ? 0.0 : 1.0,
                   .request_size = kind.request_size,
                   .depth = depth,
                   .warm_up = Duration::from_seconds(options_.seconds / 5),
                   .duration = Duration::from_seconds(options_.seconds)};
    load.clock = &now;
    return carry(load);
  }

 private:
  // Read when the measured time begins and when it has ended.
  struct Spent {
    Duration box_cpu;
    Duration host_cpu;
    uint64_t box_calls = 0;
    uint64_t host_calls = 0;
  };

  CairnPair(const FabricOptions& options, const Variant& variant, std::unique_ptr<BoxProcess> box)
      : options_(options), variant_(variant), box_(std::move(box)) {}

  Result<Figures> carry(const DriveLoad& load) {
    box_->resume();
    Result<std::unique_ptr<env::World>> world =
        options_.world({.cpus = {options_.host_cpu}, .poll = variant_.poll});
    if (!world) return fail(world.error());
    Result<LoadResult> result = fail(Errc::kIo, "the load did not run");
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return carry_in(env, load, result); });
    box_->pause();
    if (!ran) return fail(ran.error());
    if (!result) return fail(result.error());
    if (result->error) return fail(*result->error);
    Figures figures{.per_second = result->per_second, .latency_ns = result->latency_ns()};
    const auto count = static_cast<double>(std::max<uint64_t>(result->requests(), 1));
    figures.server = {(after_.box_cpu - before_.box_cpu).us() / count,
                      static_cast<double>(after_.box_calls - before_.box_calls) / count};
    figures.client = {(after_.host_cpu - before_.host_cpu).us() / count,
                      static_cast<double>(after_.host_calls - before_.host_calls) / count};
    return figures;
  }

  task::Task<void> carry_in(env::Env& env, const DriveLoad& load, Result<LoadResult>& result) {
    LoadJobs jobs;
    jobs.open = [this, &load](env::Env& there) { return open(there, load.depth); };
    jobs.watch.begins = [this, &env] { before_ = spent(env); };
    jobs.watch.ended = [this, &env] { after_ = spent(env); };
    result = co_await run_load_jobs(env, load, jobs);
  }
  task::Task<Result<std::unique_ptr<drive::Drive>>> open(env::Env& env, uint32_t depth) {
    fabric::Uri uri = box_->uri();
    uri.options.doorbell.mode = variant_.batching;
    uri.options.depth = static_cast<uint16_t>(std::max(depth, 16u));
    Result<std::unique_ptr<fabric::RemoteDrive>> drive =
        co_await fabric::RemoteDrive::open(env, uri);
    if (!drive) co_return fail(drive.error());
    co_return std::move(*drive);
  }
  Spent spent(env::Env& env) const {
    return {box_->cpu_time(), cpu_time(), box_->system_calls(), env.system_calls()};
  }

  const FabricOptions& options_;
  const Variant& variant_;
  std::unique_ptr<BoxProcess> box_;
  Spent before_;
  Spent after_;
};

std::string name_of(const LoadKind& kind, uint32_t depth) {
  return fmt::format("{}_qd{}", kind.name, depth);
}

bool wants(const FabricOptions& options, const LoadKind& kind, uint32_t depth) {
  const auto named = [&](const std::string& name) {
    return name == kind.name || name == name_of(kind, depth);
  };
  return options.only.empty() || std::ranges::any_of(options.only, named);
}

Result<Figures> run_bare(const FabricOptions& options, const LoadKind& kind, uint32_t depth) {
  return bare_exchange({.seconds = options.seconds,
                        .warm_up_seconds = options.seconds / 5,
                        .data_size = kind.request_size,
                        .depth = depth,
                        .writes = kind.writes,
                        .memory = options.memory,
                        .server_cpu = options.box_cpu,
                        .client_cpu = options.host_cpu});
}

Measurement measurement_of(const Contestant& contestant) {
  Measurement result{contestant.load_name, contestant.variant, "IO/s", contestant.per_second};
  Histogram latency;
  for (const Figures& each : contestant.figures) latency.merge(each.latency_ns);
  result.add_latency(latency);
  const auto add = [&](const char* name, auto&& value_of) {
    std::vector<double> values;
    for (const Figures& each : contestant.figures) values.push_back(value_of(each));
    result.extras.emplace_back(name, median(std::move(values)));
  };
  add("box_cpu_us", [](const Figures& each) { return each.server.cpu_us; });
  add("host_cpu_us", [](const Figures& each) { return each.client.cpu_us; });
  add("box_system_calls", [](const Figures& each) { return each.server.system_calls; });
  add("host_system_calls", [](const Figures& each) { return each.client.system_calls; });
  return result;
}

Result<void> add_plain_sockets(const FabricOptions& options, Report& report) {
  Measurement stream{"tcp_stream", "plain", "bytes/s", {}, {}};
  Measurement pingpong{"tcp_pingpong4k", "plain", "round trips/s", {}, {}};
  const Load load{.seconds = options.seconds,
                  .warm_up_seconds = options.seconds / 5,
                  .server_cpu = options.box_cpu,
                  .client_cpu = options.host_cpu};
  Histogram latency;
  for (int round = 0; round < options.rounds; ++round) {
    const Result<Sample> streamed = raw_blocking_stream(load);
    if (!streamed) return fail(streamed.error());
    stream.samples.push_back(streamed->per_second);
    const Result<Sample> ponged = raw_blocking_pingpong(load);
    if (!ponged) return fail(ponged.error());
    pingpong.samples.push_back(ponged->per_second);
    latency.merge(ponged->latency_ns);
  }
  pingpong.add_latency(latency);
  report.add(std::move(stream));
  report.add(std::move(pingpong));
  return {};
}

void add_ratios(Report& report) {
  const std::pair<const char*, const char*> kRatios[] = {
      {"read4k_qd128", "read4k_qd128"}, {"read4k_qd32", "read4k_qd32"},
      {"read4k_qd1", "read4k_qd1"},     {"write4k_qd128", "write4k_qd128"},
      {"write4k_qd32", "write4k_qd32"}, {"write4k_qd1", "write4k_qd1"},
      {"read128k", "read128k_qd32"},    {"write128k", "write128k_qd32"}};
  for (const auto& [ratio, load] : kRatios) {
    const Measurement* bare = report.find(load, "bare");
    if (bare == nullptr) continue;
    report.add_ratio(fmt::format("{}_vs_bare", ratio),
                     paired_ratio(*report.find(load, "cairn"), *bare));
    report.add_ratio(fmt::format("{}_sleeping_vs_bare", ratio),
                     paired_ratio(*report.find(load, "cairn_sleeping"), *bare));
  }
}

// What batching saves at depth, and what it costs without any.
void add_batching_ratios(const std::vector<Contestant>& contestants, Report& report) {
  const auto median_of = [&](const std::string& load, const char* variant, auto&& value_of) {
    std::vector<double> values;
    for (const Contestant& each : contestants) {
      if (each.load_name != load || each.variant != variant) continue;
      for (const Figures& figures : each.figures) values.push_back(value_of(figures));
    }
    return median(std::move(values));
  };
  const auto cpu = [](const Figures& each) { return each.server.cpu_us + each.client.cpu_us; };
  const auto p50 = [](const Figures& each) { return static_cast<double>(each.latency_ns.p50()); };
  const auto add = [&](const std::string& ratio, double one, double other) {
    if (one > 0 && other > 0) report.add_ratio(ratio, one / other);
  };
  for (const std::string load : {"read4k_qd128", "write4k_qd128", "read4k_qd32", "write4k_qd32"}) {
    add(load + "_per_cpu_vs_off", median_of(load, "off_sleeping", cpu),
        median_of(load, "cairn_sleeping", cpu));
  }
  for (const std::string load : {"read4k_qd1", "write4k_qd1"}) {
    const double off = median_of(load, "off_sleeping", p50);
    add(load + "_p50_vs_off", median_of(load, "cairn_sleeping", p50), off);
    add(load + "_p50_fixed_vs_off", median_of(load, "fixed_sleeping", p50), off);
  }
}

}  // namespace

const std::vector<std::string>& fabric_loads() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const LoadKind& kind : kKinds) {
      all.push_back(kind.name);
      for (const uint32_t depth : kDepths) all.push_back(name_of(kind, depth));
    }
    return all;
  }();
  return names;
}

Result<Report> bench_fabric(const FabricOptions& options) {
  std::vector<std::unique_ptr<CairnPair>> pairs;
  for (const Variant& variant : kVariants) {
    Result<std::unique_ptr<CairnPair>> pair = CairnPair::start(options, variant);
    if (!pair) return fail(pair.error());
    pairs.push_back(std::move(*pair));
  }
  std::vector<Contestant> contestants;
  for (const LoadKind& kind : kKinds) {
    for (const uint32_t depth : kDepths) {
      if (!wants(options, kind, depth)) continue;
      const std::string name = name_of(kind, depth);
      contestants.push_back(
          {name, "bare", [&options, &kind, depth] { return run_bare(options, kind, depth); }});
      for (size_t i = 0; i < std::size(kVariants); ++i) {
        if (kVariants[i].only_4k && kind.request_size != 4096) continue;
        contestants.push_back({name, kVariants[i].name, [&pair = *pairs[i], &kind, depth] {
                                 return pair.carry(kind, depth);
                               }});
      }
    }
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Contestant& each : contestants) {
      if (options.progress) {
        options.progress(fmt::format("round {} of {}: {} {}", round + 1, options.rounds,
                                     each.load_name, each.variant));
      }
      Result<Figures> figures = each.run();
      if (!figures) return fail(figures.error());
      each.per_second.push_back(figures->per_second);
      each.figures.push_back(std::move(*figures));
    }
  }
  Report report("fabric");
  for (const Contestant& each : contestants) report.add(measurement_of(each));
  if (options.only.empty()) {
    if (const Result<void> added = add_plain_sockets(options, report); !added) {
      return fail(added.error());
    }
  }
  add_ratios(report);
  add_batching_ratios(contestants, report);
  return report;
}

}  // namespace cairn::bench
