// SPDX-License-Identifier: Apache-2.0
#include "bench/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/alloc_count.h"
#include "bench/idle.h"
#include "bench/raw_sockets.h"
#include "bench/sim_speed.h"
#include "bench/task_cost.h"

namespace cairn::bench {

namespace {

using Run = std::function<Result<Sample>(const Load&)>;

// One way of carrying one load, and what it has shown so far.
struct Contestant {
  std::string load_name;  // "stream"
  std::string variant;    // "raw_blocking", "uring"
  Run run;
  std::vector<double> per_second;
  std::vector<double> cpu_us;
  Histogram latency_ns;
};

bool wants(const RuntimeOptions& options, std::string_view part) {
  return options.only.empty() || std::ranges::find(options.only, part) != options.only.end();
}

std::vector<Contestant> contestants(const RuntimeOptions& options) {
  std::vector<Contestant> all;
  const auto world = [&options](const WorldFactory& factory, auto* run) -> Run {
    return [&factory, run, poll = options.poll](const Load& load) {
      return run(factory, WorldLoad{load, poll});
    };
  };
  if (wants(options, "stream")) {
    all.push_back({"stream", "raw_blocking", raw_blocking_stream});
    all.push_back({"stream", "raw_epoll", raw_epoll_stream});
    for (const auto& [name, factory] : options.worlds) {
      all.push_back({"stream", name, world(factory, &world_stream)});
      all.push_back({"stream", name + "_receive", world(factory, &world_stream_receive)});
    }
  }
  if (wants(options, "pingpong")) {
    all.push_back({"pingpong", "raw_blocking", raw_blocking_pingpong});
    all.push_back({"pingpong", "raw_epoll", raw_epoll_pingpong});
    for (const auto& [name, factory] : options.worlds) {
      all.push_back({"pingpong", name, world(factory, &world_pingpong)});
    }
  }
  return all;
}

Measurement measurement_of(const Contestant& contestant) {
  const bool is_stream = contestant.load_name == "stream";
  Measurement measurement{contestant.load_name, contestant.variant,
                          is_stream ? "bytes/s" : "round trips/s", contestant.per_second};
  if (!is_stream) measurement.add_latency(contestant.latency_ns);
  measurement.extras.emplace_back("cpu_us_per_operation", median(contestant.cpu_us));
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

void add_task_costs(Report& report, const RuntimeOptions& options) {
  const auto count = static_cast<uint64_t>(std::clamp(options.load.seconds, 0.01, 1.0) * 5e6);
  Measurement immediate{"task_immediate", "", "ns"};
  Measurement suspended{"task_suspended", "", "ns"};
  double immediate_allocations = 0;
  double suspended_allocations = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const TaskCost one = immediate_task_cost(count);
    const TaskCost other = suspended_task_cost(count);
    immediate.samples.push_back(one.ns);
    suspended.samples.push_back(other.ns);
    immediate_allocations = std::max(immediate_allocations, one.allocations);
    suspended_allocations = std::max(suspended_allocations, other.allocations);
  }
  if (counts_allocations()) {
    immediate.extras.emplace_back("allocations_per_operation", immediate_allocations);
    suspended.extras.emplace_back("allocations_per_operation", suspended_allocations);
  }
  report.add(std::move(immediate));
  report.add(std::move(suspended));
}

void add_sim_speed(Report& report, const RuntimeOptions& options) {
  Measurement events{"sim_echo_events", "", "events/s"};
  Measurement speed{"sim_echo_speed", "", "simulated s/s"};
  const SimLoad load{.seconds = options.load.seconds};
  for (int round = 0; round < options.rounds; ++round) {
    const SimSpeed measured = sim_echo_speed(load);
    events.samples.push_back(measured.events_per_second);
    speed.samples.push_back(measured.simulated_seconds_per_second);
  }
  speed.extras.emplace_back("clients", load.clients);
  speed.extras.emplace_back("message_bytes", load.message_size);
  report.add(std::move(events));
  report.add(std::move(speed));
}

Result<void> add_idle(Report& report, const RuntimeOptions& options) {
  for (const auto& [world, factory] : options.worlds) {
    Measurement idle{"idle", world, "cores"};
    // One wait is enough: its share does not depend on what else the machine does.
    const Result<double> share = idle_share(factory, std::max(options.load.seconds, 1.0));
    if (!share) return fail(share.error());
    idle.samples.push_back(*share);
    report.add(std::move(idle));
  }
  return {};
}

void tell(const RuntimeOptions& options, std::string_view what) {
  if (options.progress) options.progress(what);
}

}  // namespace

const std::vector<std::string>& runtime_parts() {
  static const std::vector<std::string> kParts = {"stream", "pingpong", "task", "idle", "sim"};
  return kParts;
}

Result<Report> bench_runtime(const RuntimeOptions& options) {
  Report report("runtime");
  std::vector<Contestant> all = contestants(options);
  for (int round = 0; round < options.rounds; ++round) {
    // There and back again: whoever comes late in one round comes early in the next.
    std::ranges::reverse(all);
    for (Contestant& contestant : all) {
      tell(options, fmt::format("round {} of {}: {} {}", round + 1, options.rounds,
                                contestant.load_name, contestant.variant));
      const Result<Sample> sample = contestant.run(options.load);
      if (!sample) return fail(sample.error());
      contestant.per_second.push_back(sample->per_second);
      contestant.cpu_us.push_back(sample->cpu_us_per_operation);
      contestant.latency_ns.merge(sample->latency_ns);
    }
  }
  if (options.rounds % 2 != 0) std::ranges::reverse(all);
  for (const Contestant& contestant : all) report.add(measurement_of(contestant));
  add_ratios(report, options);
  if (wants(options, "task")) {
    tell(options, "task costs");
    add_task_costs(report, options);
  }
  if (wants(options, "idle")) {
    tell(options, "idle worlds");
    if (const Result<void> added = add_idle(report, options); !added) return fail(added.error());
  }
  if (wants(options, "sim")) {
    tell(options, "simulator");
    add_sim_speed(report, options);
  }
  for (const auto& [variant, why] : options.skipped) report.skip(variant, why);
  return report;
}

}  // namespace cairn::bench
