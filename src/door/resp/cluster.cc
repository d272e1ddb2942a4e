// SPDX-License-Identifier: Apache-2.0
#include "door/resp/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kv/ring/slot.h"

namespace cairn::door::resp {

using kv::ring::MemberId;

namespace {

// Empty: they are in one slot, and there is a view.
std::string slot_refusal(const DoorState& door, const KeySet& keys) {
  if (keys.keys().empty()) return {};
  const uint32_t slot = kv::ring::slot_of(keys.keys().front());
  const bool is_one = std::ranges::all_of(
      keys.keys(), [slot](std::string_view key) { return kv::ring::slot_of(key) == slot; });
  if (!is_one) return "CROSSSLOT Keys in request don't hash to the same slot";
  if (door.options.cluster->view() != nullptr) return {};
  return "CLUSTERDOWN Hash slot not served: this node knows no view of its cluster yet";
}

}  // namespace

std::vector<SlotRun> slot_runs(const kv::ring::View& view) {
  std::vector<SlotRun> runs;
  for (uint32_t slot = 0; slot < kv::ring::kSlots; ++slot) {
    const std::optional<MemberId> named = view.range_of(kv::ring::place_of_slot(slot)).named();
    if (!named || view.member(*named)->resp.empty()) continue;
    if (!runs.empty() && runs.back().last + 1 == slot && runs.back().member == *named) {
      runs.back().last = slot;
    } else {
      runs.push_back({.first = slot, .last = slot, .member = *named});
    }
  }
  return runs;
}

std::string node_name(MemberId member) { return fmt::format("{:040x}", member.value()); }

std::string cluster_refusal(const DoorState& door, const Command& command, const KeySet& keys) {
  if (!door.options.cluster) return {};
  std::string refusal = slot_refusal(door, keys);
  if (!refusal.empty() || keys.keys().size() < 2 || command.is(kKeyByKey | kSumOfKeys)) {
    return refusal;
  }
  return fmt::format("ERR '{}' would work on several keys at once, which a cluster does not do",
                     command.name);
}

std::string cluster_refusal(const DoorState& door, const KeySet& keys) {
  if (!door.options.cluster) return {};
  std::string refusal = slot_refusal(door, keys);
  if (!refusal.empty() || keys.keys().size() < 2) return refusal;
  return "ERR a transaction of several keys, which a cluster does not do: one key each";
}

}  // namespace cairn::door::resp
