// SPDX-License-Identifier: Apache-2.0
// A store on a drive, in a world of its own for as long as a job takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "bench/kv/kv_bench.h"
#include "env/env.h"
#include "kv/store/options.h"
#include "kv/store/store.h"
#include "task/task.h"

namespace cairn::bench {

inline constexpr uint64_t kObjectKeyBytes = 16;  // loadgen::kRecordKeyBytes

struct StorePlace {
  std::string stack;          // as in docs/services.md
  uint64_t object_bytes = 0;  // above 0: a new store, for objects of that size
  kv::store::StoreOptions options = {};
};
using StoreJob = std::function<task::Task<Result<void>>(env::Env& env, kv::store::Store& store)>;

// Opens the store on the server's CPU, runs the job and closes it. Errors: kInvalid (no such
// drive), those of the store and of the job.
Result<void> with_store(const KvBenchOptions& options, const StorePlace& place,
                        const StoreJob& job);

// A file as a drive, of so many bytes.
std::string file_drive(const KvBenchOptions& options, const std::string& path, uint64_t bytes);
// What a drive has in which that many objects take that part of what it can hold.
struct Objects {
  uint64_t count = 0;
  uint64_t bytes = 0;  // of one
};
uint64_t bytes_for(const Objects& objects, double full);

}  // namespace cairn::bench
