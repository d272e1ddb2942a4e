// SPDX-License-Identifier: Apache-2.0
#include "bench/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/crc32c_paths.h"
#include "bench/alloc_count.h"
#include "bench/contest.h"
#include "bench/crc_cost.h"
#include "bench/idle.h"
#include "bench/raw_sockets.h"
#include "bench/sim_speed.h"
#include "bench/task_cost.h"

namespace cairn::bench {

namespace {

bool wants(const RuntimeOptions& options, std::string_view part) {
  return options.only.empty() || std::ranges::find(options.only, part) != options.only.end();
}

using RuntimeContest = ContestOf<Sample>;

void add_contestants(const RuntimeOptions& options, RuntimeContest& contest) {
  const auto raw = [&](const char* load, const char* variant, auto* run) {
    contest.add(load, variant, [&options, run] { return run(options.load); });
  };
  const auto world = [&](const char* load, const std::string& variant, const WorldFactory& factory,
                         auto* run) {
    contest.add(load, variant, [&options, &factory, run] {
      return run(factory, WorldLoad{options.load, options.poll});
    });
  };
  if (wants(options, "stream")) {
    raw("stream", "raw_blocking", &raw_blocking_stream);
    raw("stream", "raw_epoll", &raw_epoll_stream);
    for (const auto& [name, factory] : options.worlds) {
      world("stream", name, factory, &world_stream);
      world("stream", name + "_receive", factory, &world_stream_receive);
    }
  }
  if (wants(options, "pingpong")) {
    raw("pingpong", "raw_blocking", &raw_blocking_pingpong);
    raw("pingpong", "raw_epoll", &raw_epoll_pingpong);
    for (const auto& [name, factory] : options.worlds) {
      world("pingpong", name, factory, &world_pingpong);
    }
  }
}

Measurement measurement_of(const RuntimeContest::Contestant& contestant) {
  const bool is_stream = contestant.load == "stream";
  Measurement measurement = contestant.line(is_stream ? "bytes/s" : "round trips/s",
                                            [](const Sample& sample) { return sample.per_second; });
  if (!is_stream) measurement.add_latency(contestant.merged(&Sample::latency_ns));
  measurement.extras.emplace_back(
      "cpu_us_per_operation",
      median(contestant.values([](const Sample& sample) { return sample.cpu_us_per_operation; })));
  return measurement;
}

void add_ratios(Report& report, const RuntimeOptions& options) {
  for (const std::string load : {"stream", "pingpong"}) {
    const Measurement* blocking = report.find(load, "raw_blocking");
    const Measurement* epoll = report.find(load, "raw_epoll");
    if (blocking == nullptr || epoll == nullptr) continue;
    for (const auto& [world, factory] : options.worlds) {
      for (const std::string way : {"", "_receive"}) {
        const Measurement* measured = report.find(load, world + way);
        if (measured == nullptr) continue;
        report.add_ratio(
            fmt::format("{}_{}{}_vs_raw", world, load, way),
            std::min(paired_ratio(*measured, *blocking), paired_ratio(*measured, *epoll)));
      }
    }
  }
}

Result<void> add_task_costs(Report& report, const RuntimeOptions& options) {
  const auto count = static_cast<uint64_t>(std::clamp(options.load.seconds, 0.01, 1.0) * 5e6);
  ContestOf<TaskCost> contest;
  contest.add("task_immediate", "", [count] { return immediate_task_cost(count); });
  contest.add("task_suspended", "", [count] { return suspended_task_cost(count); });
  if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
  for (const auto& each : contest.contestants()) {
    Measurement line = each.line("ns", [](const TaskCost& cost) { return cost.ns; });
    if (counts_allocations()) {
      line.extras.emplace_back("allocations_per_operation",
                               std::ranges::max(each.values(&TaskCost::allocations)));
    }
    report.add(std::move(line));
  }
  return {};
}

// Headers of NVMe/TCP, a block and a large transfer.
constexpr std::pair<std::string_view, size_t> kSums[] = {
    {"crc32c_24", 24}, {"crc32c_72", 72}, {"crc32c_4k", 4096}, {"crc32c_128k", 128 * 1024}};

Result<void> add_crc_costs(Report& report, const RuntimeOptions& options) {
  const auto bytes = static_cast<uint64_t>(std::clamp(options.load.seconds, 0.01, 1.0) * 2e8);
  ContestOf<double> contest;
  for (const auto& [name, size] : kSums) {
    for (const Crc32cPath& path : crc32c_paths()) {
      if (!path.runs_here()) continue;
      for (const bool copies : {false, true}) {
        contest.add(std::string(name) + (copies ? "_copy" : ""), std::string(path.name),
                    [&path, size, bytes, copies] { return crc32c_ns(path, size, bytes, copies); });
      }
    }
  }
  if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
  const auto ns = [](const double& each) { return each; };
  for (const auto& each : contest.contestants()) report.add(each.line("ns", ns));
  const std::string_view baseline = crc32c_paths().back().name;
  const auto fastest = std::ranges::find_if(crc32c_paths(), &Crc32cPath::runs_here);
  for (const auto& [name, size] : kSums) {
    const std::string load(name);
    const auto ratio = contest.ratio({load, fastest->name}, {load, baseline}, ns);
    if (ratio) report.add_ratio(load + "_vs_isal", *ratio);
  }
  return {};
}

Result<void> add_sim_speed(Report& report, const RuntimeOptions& options) {
  const SimLoad load{.seconds = options.load.seconds};
  ContestOf<SimSpeed> contest;
  contest.add("sim_echo", "", [&load] { return sim_echo_speed(load); });
  if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
  const auto& measured = contest.contestants().front();
  report.add({.name = "sim_echo_events",
              .unit = "events/s",
              .samples = measured.values(&SimSpeed::events_per_second)});
  report.add({.name = "sim_echo_speed",
              .unit = "simulated s/s",
              .samples = measured.values(&SimSpeed::simulated_seconds_per_second),
              .extras = {{"clients", load.clients}, {"message_bytes", load.message_size}}});
  return {};
}

Result<void> add_idle(Report& report, const RuntimeOptions& options) {
  for (const auto& [world, factory] : options.worlds) {
    if (options.progress) options.progress("idle worlds");
    Measurement idle{"idle", world, "cores"};
    // One wait is enough: its share does not depend on what else the machine does.
    const Result<double> share = idle_share(factory, std::max(options.load.seconds, 1.0));
    if (!share) return fail(share.error());
    idle.samples.push_back(*share);
    report.add(std::move(idle));
  }
  return {};
}

}  // namespace

const std::vector<std::string>& runtime_parts() {
  static const std::vector<std::string> kParts = {"stream", "pingpong", "task",
                                                  "crc",    "idle",     "sim"};
  return kParts;
}

Result<Report> bench_runtime(const RuntimeOptions& options) {
  Report report("runtime");
  RuntimeContest contest;
  add_contestants(options, contest);
  const auto order = RuntimeContest::Order::kThereAndBack;
  if (const Result<void> ran = contest.run(options.rounds, options.progress, order); !ran) {
    return fail(ran.error());
  }
  for (const auto& contestant : contest.contestants()) report.add(measurement_of(contestant));
  add_ratios(report, options);
  const std::pair<std::string_view, Result<void> (*)(Report&, const RuntimeOptions&)> parts[] = {
      {"task", &add_task_costs},
      {"crc", &add_crc_costs},
      {"idle", &add_idle},
      {"sim", &add_sim_speed}};
  for (const auto& [part, add] : parts) {
    if (!wants(options, part)) continue;
    if (const Result<void> added = add(report, options); !added) return fail(added.error());
  }
  for (const auto& [variant, why] : options.skipped) report.skip(variant, why);
  return report;
}

}  // namespace cairn::bench
