// SPDX-License-Identifier: Apache-2.0
// What a door says of the cluster that its node is in, and which commands a cluster takes.
//
// Every node serves every key, so no client is ever sent elsewhere. Clients are told for each slot
// which node is nearest to its keys: the one that the chain names (ring::RingRange::named()).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "door/resp/client_state.h"
#include "door/resp/command.h"
#include "door/resp/door_state.h"
#include "door/resp/view.h"
#include "kv/ring/view.h"
#include "task/task.h"

namespace cairn::door::resp {

// Slots of one node that follow each other: from `first` to `last`.
struct SlotRun {
  uint32_t first = 0;
  uint32_t last = 0;
  kv::ring::MemberId member;
};

// All slots whose node can be found by clients of Redis, in their order.
std::vector<SlotRun> slot_runs(const kv::ring::View& view);

// The name that Redis would have for it: forty digits.
std::string node_name(kv::ring::MemberId member);

// Notes that the client was told of a change of that key. Of a cluster alone.
void note_written(const DoorState& door, ClientState& client, std::string_view key);
// How many nodes have all changes that the client was told of, besides the first of each chain.
uint32_t replicas_with_all(const kv::ring::View& view, const ClientState& client);
// WAIT: until so many have them, or the time is over; tells how many do.
task::Task<void> wait_for_replicas(Call& call);

// Why a command with these keys is refused, with its code; empty: it is not, or this is no cluster.
std::string cluster_refusal(const DoorState& door, const Command& command, const KeySet& keys);
// The same for a transaction, whose commands are one change.
std::string cluster_refusal(const DoorState& door, const KeySet& keys);

}  // namespace cairn::door::resp
