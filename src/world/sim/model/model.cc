// SPDX-License-Identifier: Apache-2.0
#include "world/sim/model/model.h"

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "env/disk.h"

namespace cairn::sim {

namespace {

// The next-free-time rule: starts when the resource is free, keeps it for as long as it takes.
Time occupy(Time& free_at, Time now, uint64_t bytes, double bytes_per_ns) {
  const auto takes = Duration{static_cast<int64_t>(static_cast<double>(bytes) / bytes_per_ns)};
  free_at = std::max(free_at, now) + takes;
  return free_at;
}

}  // namespace

Time SimpleNetwork::deliver(Time now, uint32_t from, uint32_t to, uint64_t bytes) {
  if (from == to) return now + options_.latency_loopback;
  if (from >= free_at_.size()) free_at_.resize(from + 1);
  return occupy(free_at_[from], now, bytes, options_.bytes_per_ns) + options_.latency;
}

std::optional<Time> SimpleDisk::start(Time now, const env::DiskOp::Request& request,
                                      uint64_t /*tag*/) {
  using Kind = env::DiskOp::Kind;
  Duration latency = options_.write_latency;
  uint64_t bytes = 0;
  switch (request.kind) {
    case Kind::kRead:
      latency = options_.read_latency;
      bytes = request.length;
      break;
    case Kind::kWrite:
      bytes = request.length;
      break;
    case Kind::kFlush:
    case Kind::kResize:
      latency = options_.flush_latency;
      break;
    case Kind::kDiscard:
    case Kind::kWriteZeroes:
      break;
  }
  if (request.durable) latency += options_.flush_latency;
  const double factor = 1 + options_.jitter * rng_.uniform();
  const auto jittered = Duration{static_cast<int64_t>(static_cast<double>(latency.ns) * factor)};
  return occupy(free_at_, now, bytes, options_.bytes_per_ns) + jittered;
}

}  // namespace cairn::sim
