// SPDX-License-Identifier: Apache-2.0
#include "world/sim/scenario/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "world/sim/cluster.h"

namespace cairn::sim {

namespace {

using Kind = Fault::Kind;

const char* name(Kind kind) {
  switch (kind) {
    case Kind::kCrash:
      return "crash";
    case Kind::kKill:
      return "kill";
    case Kind::kPause:
      return "pause";
    case Kind::kClockStep:
      return "clock step";
    case Kind::kClog:
      return "clog";
    case Kind::kPartition:
      return "partition";
    case Kind::kPartitionOneWay:
      return "one-way partition";
    case Kind::kIsolate:
      return "isolation";
    case Kind::kReset:
      return "reset";
    case Kind::kDiskStall:
      return "disk stall";
    case Kind::kDiskFull:
      return "disk full";
    case Kind::kDiskReadErrors:
      return "disk read errors";
    case Kind::kDiskWriteErrors:
      return "disk write errors";
    case Kind::kDiskLatent:
      return "latent disk error";
  }
  return "?";
}

bool is_of_link(Kind kind) {
  return kind == Kind::kClog || kind == Kind::kPartition || kind == Kind::kPartitionOneWay ||
         kind == Kind::kReset;
}
bool is_of_disk(Kind kind) { return kind >= Kind::kDiskStall; }
bool is_momentary(Kind kind) {
  return kind == Kind::kClockStep || kind == Kind::kReset || kind == Kind::kDiskLatent;
}

const auto& pick(const auto& list, Rng& rng) { return list[rng.below(list.size())]; }

Fault draw_fault(const FaultMix& mix, Kind kind, Duration phase, Rng& rng) {
  const std::vector<std::string>& peers = mix.peers.empty() ? mix.nodes : mix.peers;
  Fault fault{.kind = kind};
  fault.at = {static_cast<int64_t>(rng.below(static_cast<uint64_t>(phase.ns)))};
  const int64_t left = std::min(mix.duration_max.ns, phase.ns - fault.at.ns);
  if (!is_momentary(kind)) {
    fault.duration = {static_cast<int64_t>(rng.between(1, static_cast<uint64_t>(left)))};
  }
  if (is_of_disk(kind)) {
    const FaultMix::DiskName& disk = pick(mix.disks, rng);
    fault.node = disk.node;
    fault.other = disk.path;
    if (kind == Kind::kDiskLatent && disk.size > 0) {
      fault.amount = static_cast<int64_t>(rng.below(disk.size));
    }
  } else if (is_of_link(kind)) {
    fault.node = pick(peers, rng);
    do fault.other = pick(peers, rng);
    while (fault.other == fault.node);
  } else {
    fault.node = pick(mix.nodes, rng);
  }
  if (kind == Kind::kClockStep) {
    const auto max = static_cast<uint64_t>(mix.clock_step_max.ns);
    fault.amount = static_cast<int64_t>(rng.below(2 * max + 1)) - mix.clock_step_max.ns;
  }
  return fault;
}

void begin(Cluster& cluster, const Fault& fault) {
  Node& node = cluster.node(fault.node);
  switch (fault.kind) {
    case Kind::kCrash:
      if (node.is_running()) node.crash();
      return;
    case Kind::kKill:
      if (node.is_running()) node.kill();
      return;
    case Kind::kPause:
      return node.pause();
    case Kind::kClockStep:
      return node.step_clock({fault.amount});
    case Kind::kClog:
      return cluster.clog(fault.node, fault.other, fault.duration);
    case Kind::kPartition:
      return cluster.partition(fault.node, fault.other);
    case Kind::kPartitionOneWay:
      return cluster.partition_one_way(fault.node, fault.other);
    case Kind::kIsolate:
      return cluster.isolate(fault.node);
    case Kind::kReset:
      return cluster.reset_streams(fault.node, fault.other);
    case Kind::kDiskStall:
      return node.disk(fault.other).stall(fault.duration);
    case Kind::kDiskFull:
      return node.disk(fault.other).full();
    case Kind::kDiskReadErrors:
      return node.disk(fault.other).fail_reads();
    case Kind::kDiskWriteErrors:
      return node.disk(fault.other).fail_writes();
    case Kind::kDiskLatent:
      return node.disk(fault.other).latent_error(static_cast<uint64_t>(fault.amount));
  }
}

void end(Cluster& cluster, const Fault& fault) {
  Node& node = cluster.node(fault.node);
  switch (fault.kind) {
    case Kind::kCrash:
      for (Node* other : cluster.nodes()) {
        if (other->is_beside(node) && other->is_down()) other->restart();
      }
      return;
    case Kind::kKill:
      if (node.is_down()) node.restart();
      return;
    case Kind::kPause:
      return node.resume();
    case Kind::kPartition:
    case Kind::kPartitionOneWay:
      return cluster.heal(fault.node, fault.other);
    case Kind::kIsolate:
      for (const Node* other : cluster.nodes()) {
        if (other != &node) cluster.heal(fault.node, other->name());
      }
      return;
    case Kind::kDiskFull:
    case Kind::kDiskReadErrors:
    case Kind::kDiskWriteErrors:
      return node.disk(fault.other).heal();
    case Kind::kClockStep:
    case Kind::kClog:
    case Kind::kReset:
    case Kind::kDiskStall:
    case Kind::kDiskLatent:
      return;
  }
}

}  // namespace

std::string Fault::text() const {
  std::string line = fmt::format("at {}: {} of {}", cairn::text(at), name(kind), node);
  if (!other.empty()) line += (is_of_disk(kind) ? ":" : " and ") + other;
  if (duration.ns != 0) line += " for " + cairn::text(duration);
  if (kind == Kind::kClockStep) line += " by " + cairn::text(Duration{amount});
  if (kind == Kind::kDiskLatent) line += fmt::format(" at byte {}", amount);
  return line;
}

std::string text(const FaultPlan& plan) {
  std::string lines;
  for (const Fault& fault : plan) lines += "  " + fault.text() + "\n";
  return lines;
}

FaultPlan draw_plan(const FaultMix& mix, Duration phase, Rng& rng) {
  const std::vector<std::string>& peers = mix.peers.empty() ? mix.nodes : mix.peers;
  std::vector<Kind> kinds;
  std::ranges::copy_if(mix.kinds, std::back_inserter(kinds), [&](Kind kind) {
    if (is_of_disk(kind)) return !mix.disks.empty();
    return is_of_link(kind) ? peers.size() > 1 : !mix.nodes.empty();
  });
  FaultPlan plan;
  if (kinds.empty() || mix.count_max == 0) return plan;
  const uint64_t count = rng.between(1, mix.count_max);
  for (uint64_t i = 0; i < count; ++i) {
    plan.push_back(draw_fault(mix, pick(kinds, rng), phase, rng));
  }
  std::ranges::sort(plan, {}, &Fault::at);
  return plan;
}

void apply_plan(Cluster& cluster, const FaultPlan& plan) {
  for (const Fault& fault : plan) {
    cluster.after(fault.at, [&cluster, fault] { begin(cluster, fault); });
    cluster.after(fault.at + fault.duration, [&cluster, fault] { end(cluster, fault); });
  }
}

}  // namespace cairn::sim
