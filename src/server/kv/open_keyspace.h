// SPDX-License-Identifier: Apache-2.0
// Where keys are kept: a keyspace of some kind, opened by what a user said and closed in the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/problem.h"
#include "drive/health.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "kv/store/durability.h"
#include "kv/store/options.h"
#include "task/task.h"

namespace cairn::server {

struct KeyspaceArgs {
  uint64_t memory_max = 4ULL << 30;  // of one in memory
  std::string stack;                 // of one on a drive; empty: in memory
  kv::store::Durability durability = kv::store::Durability::kCommit;
  // A drive that holds something else, which is lost, becomes a store; one that is a store stays
  // as it is.
  bool may_format = false;
  // Of a key and its value, on average, where a blank drive becomes a store (kv/store/layout.h).
  uint64_t object_bytes = kv::store::FormatOptions().object_bytes;
};

// Closed before it goes, and after everybody who uses the keyspace.
class OpenKeyspace {
 public:
  virtual ~OpenKeyspace() = default;
  virtual kv::Keyspace& keys() = 0;
  virtual task::Task<void> close() = 0;
  // Where the keys are: "memory", "drive".
  virtual std::string keeper() const = 0;
  // When an acknowledged change survives a crash: "commit", "interval", "none".
  virtual std::string durability() const = 0;
  // How well the drive is that they are on; none: they are in memory.
  virtual std::optional<drive::StackHealth> health() const { return std::nullopt; }
};

// A blank drive becomes a store. The Problem says why it does not open, and what to do.
task::Task<Attempt<std::unique_ptr<OpenKeyspace>>> open_keyspace(env::Env& env,
                                                                 const KeyspaceArgs& args);

}  // namespace cairn::server
