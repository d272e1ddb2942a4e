// SPDX-License-Identifier: Apache-2.0
// The attack: connections that send mutants as fast as the box answers, and a neighbour who checks
// that its own data stay what they are.
#pragma once

#include <cstdint>
#include <string>

#include "env/address.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::live_fuzz {

struct AttackOptions {
  env::Address box;
  uint64_t commands = 100'000;  // of all connections together
  uint32_t associations = 4;    // each an admin and an I/O queue
  uint64_t seed = 1;
};

struct AttackReport {
  uint64_t sent = 0;
  uint64_t answered = 0;
  uint64_t r2ts = 0;
  uint64_t associations = 0;  // that were made
  uint64_t term_reqs = 0;
  uint64_t neighbour_writes = 0;
  uint64_t neighbour_reads = 0;
  std::string wrong;  // empty: nothing
};

task::Task<void> attack(env::Env& env, const AttackOptions& options, AttackReport& report);

}  // namespace cairn::live_fuzz
