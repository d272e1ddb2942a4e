// SPDX-License-Identifier: Apache-2.0
// Where keys are kept: a keyspace of some kind, opened by what a user said and closed in the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/problem.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "task/task.h"

namespace cairn::server {

struct KeyspaceArgs {
  uint64_t memory_max = 4ULL << 30;  // of one in memory
};

// Closed before it goes, and after everybody who uses the keyspace.
class OpenKeyspace {
 public:
  virtual ~OpenKeyspace() = default;
  virtual kv::Keyspace& keys() = 0;
  virtual task::Task<void> close() = 0;
  // Where the keys are: "memory".
  virtual std::string keeper() const = 0;
};

// The Problem says why it does not open, and what to do.
task::Task<Attempt<std::unique_ptr<OpenKeyspace>>> open_keyspace(env::Env& env,
                                                                 const KeyspaceArgs& args);

}  // namespace cairn::server
