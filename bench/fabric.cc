// SPDX-License-Identifier: Apache-2.0
#include "bench/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/bare_exchange.h"
#include "bench/contest.h"
#include "bench/fabric_boxes.h"
#include "bench/fabric_ratios.h"
#include "bench/raw_sockets.h"
#include "bench/strangers.h"

namespace cairn::bench {

namespace {

using namespace fabric_names;
using Batching = fabric::DoorbellOptions::Mode;

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
  std::string_view name;
  bool poll;
  Batching batching;
  bool only_4k;  // the others say nothing about it
};
constexpr Variant kVariants[] = {
    {kPolling, true, Batching::kAdaptive, false},
    {kSleeping, false, Batching::kAdaptive, false},
    {kFixed, false, Batching::kFixed, true},
    {kOff, false, Batching::kOff, true},
};

// A thousand connections are the I/O queues of these sessions.
constexpr uint32_t kManySessions = 8;
constexpr uint16_t kQueuesOfEach = 125;
constexpr uint32_t kConnectionsDepth = kManySessions * kQueuesOfEach;
constexpr uint32_t kTargetsCount = 48;
constexpr uint32_t kTargetsDepth = kTargetsCount * 16;

const std::string kRatePart = "rate";
constexpr Duration kNap = 100_us;
const std::string kConnectionsPart = "connections";
const std::string kTargetsPart = "targets";
const std::string kStrangersPart = "strangers";
constexpr std::string_view kFriendNqn = "nqn.2026-11.io.cairn:friend";
constexpr double kStrangersSecondsMax = 10;  // of all its runs in all rounds together

std::string name_of(const LoadKind& kind, uint32_t depth) {
  return fmt::format("{}_qd{}", kind.name, depth);
}

BoxKind kind_of(const Variant& variant) {
  return {.poll = variant.poll, .doorbell = {.mode = variant.batching}};
}

class FabricBench {
 public:
  explicit FabricBench(const FabricOptions& options)
      : options_(options),
        boxes_({.world = options.world,
                .box_cpu = options.box_cpu,
                .host_cpu = options.host_cpu,
                .memory = options.memory}) {}

  Result<Report> run() {
    for (const LoadKind& kind : kKinds) {
      for (const uint32_t depth : kDepths) {
        if (!wants(kind.name) && !wants(name_of(kind, depth))) continue;
        if (const Result<void> added = add_load(kind, depth); !added) return fail(added.error());
      }
    }
    for (const auto& [part, add] : {std::pair{&kRatePart, &FabricBench::add_rate},
                                    std::pair{&kConnectionsPart, &FabricBench::add_connections},
                                    std::pair{&kTargetsPart, &FabricBench::add_targets},
                                    std::pair{&kStrangersPart, &FabricBench::add_strangers}}) {
      if (!wants(*part)) continue;
      if (const Result<void> added = (this->*add)(); !added) return fail(added.error());
    }
    if (const Result<void> ran = contest_.run(options_.rounds, options_.progress); !ran) {
      return fail(ran.error());
    }
    Report report("fabric");
    report_exchanges(contest_, report);
    if (!no_strangers_.empty()) report.skip(kStrangersPart, no_strangers_);
    add_fabric_ratios(contest_, report);
    return report;
  }

 private:
  bool wants(const std::string& name) const {
    return options_.only.empty() || std::ranges::find(options_.only, name) != options_.only.end();
  }

  loadgen::DriveLoad load(const LoadKind& kind, uint32_t depth) const {
    return {.read_share = kind.writes ? 0.0 : 1.0,
            .request_size = kind.request_size,
            .depth = depth,
            .warm_up = Duration::from_seconds(options_.seconds / 5),
            .duration = Duration::from_seconds(options_.seconds)};
  }
  void add(std::string_view name, std::string_view variant, FabricPair* pair,
           const loadgen::DriveLoad& load, const HostSetup& host) {
    contest_.add(std::string(name), std::string(variant),
                 [pair, load, host] { return pair->carry(load, host); });
  }

  Result<void> add_load(const LoadKind& kind, uint32_t depth) {
    const std::string name = name_of(kind, depth);
    contest_.add(name, std::string(kBare), [this, &kind, depth] {
      return bare_exchange({.seconds = options_.seconds,
                            .warm_up_seconds = options_.seconds / 5,
                            .data_size = kind.request_size,
                            .depth = depth,
                            .writes = kind.writes,
                            .memory = options_.memory,
                            .server_cpu = options_.box_cpu,
                            .client_cpu = options_.host_cpu});
    });
    for (const Variant& variant : kVariants) {
      if (variant.only_4k && kind.request_size != 4096) continue;
      Result<FabricPair*> by = boxes_.get(kind_of(variant));
      if (!by) return fail(by.error());
      HostSetup host{.poll = variant.poll, .doorbell = {.mode = variant.batching}};
      add(name, variant.name, *by, load(kind, depth), host);
      if (variant.name != kSleeping || kind.request_size != 4096 || depth != 128) continue;
      host.digests = true;
      add(name, kDigests, *by, load(kind, depth), host);
    }
    return {};
  }

  Result<void> add_rate() {
    loadgen::DriveLoad paced = load(kKinds[0], 128);
    paced.rate = kPacedRate;
    for (const Variant& variant : kVariants) {
      if (variant.poll) continue;
      Result<FabricPair*> by = boxes_.get(kind_of(variant));
      if (!by) return fail(by.error());
      add(kPaced, variant.name, *by, paced, {.doorbell = {.mode = variant.batching}});
    }
    // The default finds out for a tenth of a second what pays.
    paced.warm_up = std::max(paced.warm_up, 300_ms);
    for (const auto& [name, nap] : {std::pair{kNapping, std::optional(kNap)},
                                    std::pair{kDefault, std::optional<Duration>()}}) {
      Result<FabricPair*> by = boxes_.get({.nap = nap});
      if (!by) return fail(by.error());
      add(kPaced, name, *by, paced, {.nap = nap});
    }
    return {};
  }

  Result<void> add_connections() {
    const loadgen::DriveLoad all = load(kKinds[0], kConnectionsDepth);
    for (const Batching batching : {Batching::kAdaptive, Batching::kOff}) {
      const bool is_off = batching == Batching::kOff;
      Result<FabricPair*> by = boxes_.get({.doorbell = {.mode = batching}});
      if (!by) return fail(by.error());
      HostSetup host{.doorbell = {.mode = batching}};
      add(kConnections, is_off ? kOneConnectionOff : kOneConnection, *by, all, host);
      host.sessions = kManySessions;
      host.queues = kQueuesOfEach;
      add(kConnections, is_off ? kManyConnectionsOff : kManyConnections, *by, all, host);
    }
    return {};
  }

  Result<void> add_targets() {
    Result<FabricPair*> one = boxes_.get({});
    if (!one) return fail(one.error());
    Result<FabricPair*> many = boxes_.get({.targets = kTargetsCount});
    if (!many) return fail(many.error());
    for (const LoadKind& kind : {kKinds[0], kKinds[1]}) {
      const std::string_view name = kind.writes ? kTargetsWrite : kTargetsRead;
      add(name, kOneTarget, *one, load(kind, kTargetsDepth), {});
      add(name, kManyTargets, *many, load(kind, kTargetsDepth), {});
    }
    return {};
  }

  Result<void> add_strangers() {
    // The box inherits it.
    const Result<uint64_t> room = make_room_for_strangers();
    if (!room) {
      no_strangers_ = room.error().text() + ": raise it ('ulimit -Hn 4096', as root)";
      return {};
    }
    if (options_.progress) options_.progress(fmt::format("{} files may be open", *room));
    Result<FabricPair*> by = boxes_.get({.only_host = std::string(kFriendNqn)});
    if (!by) return fail(by.error());
    loadgen::DriveLoad reads = load(kKinds[0], 1);
    const auto runs = static_cast<double>(options_.rounds * (std::size(kStrangerCounts) + 1));
    const double seconds = std::min(options_.seconds, kStrangersSecondsMax / runs);
    reads.warm_up = Duration::from_seconds(seconds / 5);
    reads.duration = Duration::from_seconds(seconds);
    add(kFriend, kQuiet, *by, reads, {});
    for (const uint32_t count : kStrangerCounts) {
      add(kFriend, among_strangers(count), *by, reads, {.strangers = count});
    }
    return {};
  }

  const FabricOptions& options_;
  std::string no_strangers_;  // why not; empty: they come, or nobody wants them
  FabricBoxes boxes_;
  Contest contest_;
};

Result<void> add_plain_sockets(const FabricOptions& options, Report& report) {
  const Load load{.seconds = options.seconds,
                  .warm_up_seconds = options.seconds / 5,
                  .server_cpu = options.box_cpu,
                  .client_cpu = options.host_cpu};
  ContestOf<Sample> contest;
  contest.add("tcp_stream", "plain", [&load] { return raw_blocking_stream(load); });
  contest.add("tcp_pingpong4k", "plain", [&load] { return raw_blocking_pingpong(load); });
  if (const Result<void> ran = contest.run(options.rounds, options.progress); !ran) return ran;
  const auto per_second = [](const Sample& sample) { return sample.per_second; };
  const auto& stream = contest.contestants()[0];
  const auto& pingpong = contest.contestants()[1];
  report.add(stream.line("bytes/s", per_second));
  Measurement line = pingpong.line("round trips/s", per_second);
  line.add_latency(pingpong.merged(&Sample::latency_ns));
  report.add(std::move(line));
  return {};
}

}  // namespace

const std::vector<std::string>& fabric_loads() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const LoadKind& kind : kKinds) {
      all.push_back(kind.name);
      for (const uint32_t depth : kDepths) all.push_back(name_of(kind, depth));
    }
    all.insert(all.end(), {kRatePart, kConnectionsPart, kTargetsPart, kStrangersPart});
    return all;
  }();
  return names;
}

Result<Report> bench_fabric(const FabricOptions& options) {
  FabricBench bench(options);
  Result<Report> report = bench.run();
  if (!report || !options.only.empty()) return report;
  if (const Result<void> added = add_plain_sockets(options, *report); !added) {
    return fail(added.error());
  }
  return report;
}

}  // namespace cairn::bench
