// SPDX-License-Identifier: Apache-2.0
// Check: whether all that a store has can be read and fits together, without opening it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::kv::store {

struct CheckReport {
  uint64_t keys = 0;      // that are there, with those that have expired
  uint64_t segments = 0;  // that have any
  uint64_t live_bytes = 0;
  uint64_t scanned_buckets = 0;   // of the key log behind the checkpoint
  uint64_t damaged = 0;           // segments, values and numbers that are wrong
  std::vector<std::string> what;  // the first of those, as sentences
};

inline constexpr size_t kDamagesTold = 100;

// Reads every segment and every value. Nothing is written, and nobody else writes meanwhile. Errors
// as recover() (recovery.h), and those of the drive; what is damaged behind that is in the report.
task::Task<Result<CheckReport>> check(env::Env& env, drive::Drive& drive, Duration io_timeout);

}  // namespace cairn::kv::store
