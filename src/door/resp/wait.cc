// SPDX-License-Identifier: Apache-2.0
// WAIT, in a cluster: which replicas have what a connection wrote.
//
// A write is answered when all replicas that its chain has then hold it, and whoever answers reads
// later holds all that was answered before. So the replicas of a chain that run, or leave, are
// those that have the connection's writes.
#include <algorithm>
#include <memory>
#include <optional>

#include "door/resp/cluster.h"
#include "door/resp/number.h"
#include "kv/ring/slot.h"
#include "task/deadline.h"

namespace cairn::door::resp {

namespace {

constexpr Duration kLook = 50_ms;  // between looks at the view
constexpr int64_t kTimeoutMsMax = INT64_MAX / 2'000'000;

uint32_t others_in(const kv::ring::RingRange& range) {
  const auto holders = std::ranges::count_if(range.chain, [](const kv::ring::Replica& each) {
    return each.state != kv::ring::Replica::State::kJoining;
  });
  return holders > 0 ? static_cast<uint32_t>(holders - 1) : 0;
}

uint32_t replicas_now(const DoorState& door, const ClientState& client) {
  if (!door.options.cluster) return 0;
  const ClusterOptions& cluster = *door.options.cluster;
  const std::shared_ptr<const kv::ring::View> view = cluster.view();
  if (!view || (cluster.is_current && !cluster.is_current())) return 0;
  return replicas_with_all(*view, client);
}

}  // namespace

void note_written(const DoorState& door, ClientState& client, std::string_view key) {
  if (!door.options.cluster) return;
  client.written_slots.resize(kv::ring::kSlots);
  client.written_slots[kv::ring::slot_of(key)] = true;
}

uint32_t replicas_with_all(const kv::ring::View& view, const ClientState& client) {
  uint32_t least = UINT32_MAX;
  for (uint32_t slot = 0; slot < client.written_slots.size(); ++slot) {
    if (!client.written_slots[slot]) continue;
    least = std::min(least, others_in(view.range_of(kv::ring::place_of_slot(slot))));
  }
  if (least != UINT32_MAX) return least;
  // Nothing was written: all have that.
  for (const kv::ring::RingRange& range : view.ranges) least = std::min(least, others_in(range));
  return least;
}

task::Task<void> wait_for_replicas(Call& call) {
  const std::optional<int64_t> wanted = parse_integer(call.args[1]);
  const std::optional<int64_t> timeout = parse_integer(call.args[2]);
  if (!wanted) {
    call.reply.error("ERR value is not an integer or out of range");
    co_return;
  }
  if (!timeout || *timeout > kTimeoutMsMax) {
    call.reply.error("ERR timeout is not an integer or out of range");
    co_return;
  }
  if (*timeout < 0) {
    call.reply.error("ERR timeout is negative");
    co_return;
  }
  env::Env& env = call.door.env;
  const Time end = env.now() + Duration{*timeout * 1'000'000};
  uint32_t have = replicas_now(call.door, call.client);
  // Without a cluster there will never be one.
  while (call.door.options.cluster && have < *wanted && (*timeout == 0 || env.now() < end)) {
    const Duration pause = *timeout == 0 ? kLook : std::min(kLook, end - env.now());
    const Result<void> slept = co_await task::sleep_for(env, pause, call.client.end.token());
    if (!slept) break;
    have = replicas_now(call.door, call.client);
  }
  call.reply.integer(have);
}

}  // namespace cairn::door::resp
