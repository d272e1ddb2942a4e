// SPDX-License-Identifier: Apache-2.0
// A load on a key-value store, wherever it is: what is asked of it, and what it did.
//
//   const KeyLoad load{.mix = *find_key_mix("a"), .records = 1'000'000, .duration = 10_s};
//   Result<void> filled = co_await fill_keys(env, target, load, token);
//   Result<KeyLoadResult> result = co_await run_key_load(env, target, load, token);
//
// Closed loop: `depth` operations are outstanding, and a new one follows each that completes. Open
// loop (rate above 0): operations are due at even distances, whatever the store does, and the
// latency of each counts from when it was due. So a store that stalls pays for all that would have
// come meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/histogram.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/keyspace.h"
#include "loadgen/key_mix.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::loadgen {

inline constexpr uint32_t kKeyDepthMax = 4096;

// What is loaded. Keys and values are lent until it is done; any number of calls at once, each with
// the number of the worker that makes it, who makes one at a time.
class KeyTarget {
 public:
  virtual ~KeyTarget() = default;
  // None: there is no such key.
  virtual task::Task<Result<std::optional<std::string>>> get(uint32_t worker,
                                                             std::string_view key) = 0;
  virtual task::Task<Result<void>> put(uint32_t worker, std::string_view key,
                                       std::string_view value) = 0;
};

class KeyspaceTarget final : public KeyTarget {
 public:
  explicit KeyspaceTarget(kv::Keyspace& keyspace) : keyspace_(keyspace) {}
  task::Task<Result<std::optional<std::string>>> get(uint32_t worker,
                                                     std::string_view key) override;
  task::Task<Result<void>> put(uint32_t worker, std::string_view key,
                               std::string_view value) override;

 private:
  kv::Keyspace& keyspace_;
};

struct KeyLoad {
  KeyMix mix;
  YcsbDistribution distribution = YcsbDistribution::kZipfian;
  double exponent = kYcsbExponent;
  uint64_t records = 100'000;
  size_t value_bytes = 256;
  uint32_t depth = 64;  // outstanding at most, 1 to kKeyDepthMax
  double rate = 0;      // operations per second; 0: closed loop
  Duration duration = 1_s;
  uint64_t operations_max = 0;  // ends it earlier; 0: no such end
  uint64_t seed = 1;
  // As DriveLoad::clock.
  Time (*clock)() = nullptr;

  KeyDraw draw() const {
    return {.distribution = distribution, .exponent = exponent, .records = records, .seed = seed};
  }
};

struct KeyLoadResult {
  uint64_t operations = 0;
  Duration measured;  // from the first to the end of the last
  Histogram read_latency_ns;
  Histogram write_latency_ns;  // of updates, inserts and changes
  // The first operation that failed, kCorrupt if a value was another's or missing; it ended the
  // load.
  std::optional<Error> error;

  double per_second() const {
    return measured.ns > 0 ? static_cast<double>(operations) / measured.seconds() : 0;
  }
};

// kInvalid, with what is wrong.
Result<void> check_key_load(const KeyLoad& load);

// Puts all records, `depth` at once. Errors of the target, and as check_key_load().
task::Task<Result<void>> fill_keys(env::Env& env, KeyTarget& target, KeyLoad load,
                                   task::CancelToken token = {});

// The load on records that are there. Ends when its time is over, its operations are done, one
// failed or `token` is requested, once nothing is outstanding. In open loop what was due by then is
// done first. Errors: as check_key_load().
task::Task<Result<KeyLoadResult>> run_key_load(env::Env& env, KeyTarget& target, KeyLoad load,
                                               task::CancelToken token = {});

}  // namespace cairn::loadgen
