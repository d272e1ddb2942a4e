// SPDX-License-Identifier: Apache-2.0
// DoorState: what all connections of a door share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "base/list.h"
#include "base/units.h"
#include "door/resp/client_state.h"
#include "door/resp/command_table.h"
#include "door/resp/config.h"
#include "door/resp/options.h"
#include "env/env.h"
#include "kv/keyspace.h"

namespace cairn::door::resp {

struct DoorStats {
  uint64_t connections_received = 0;
  uint64_t connections_rejected = 0;
  uint64_t clients_evicted = 0;
  uint64_t commands = 0;
  uint64_t errors = 0;
  uint64_t hits = 0;  // keys that a read found
  uint64_t misses = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  LatencyBuckets latency;  // of commands, from when each begins to its reply
};

// On the door's core. Members of `clients` take themselves out.
struct DoorState {
  DoorState(env::Env& its_env, kv::Keyspace& its_keys, const RespOptions& its_options)
      : env(its_env),
        keys(its_keys),
        options(its_options),
        config(its_options),
        calls(commands.size()),
        since(its_env.now()) {}

  env::Env& env;
  kv::Keyspace& keys;
  const RespOptions options;
  const CommandTable commands;
  Config config;
  DoorStats stats;
  std::vector<uint64_t> calls;  // of each command, by its place in the table
  List<ClientState> clients;
  size_t client_count = 0;
  size_t client_bytes = 0;  // of all clients
  uint64_t last_client_id = 0;
  uint16_t port = 0;
  Time since;
};

}  // namespace cairn::door::resp
