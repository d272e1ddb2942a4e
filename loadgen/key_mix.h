// SPDX-License-Identifier: Apache-2.0
// KeyMix: what the workloads of YCSB ask of a key-value store, and their operations one by one.
//
// The records of a load are numbered; a record's key is scattered over all keys, and its value says
// whose it is. E, which scans in the order of keys, is not here: stores by hash have no order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/rng.h"
#include "loadgen/ycsb_keys.h"

namespace cairn::loadgen {

inline constexpr size_t kRecordKeyBytes = 16;
inline constexpr size_t kRecordValueBytesMin = 8;

// Shares of the operations; the others read a record.
struct KeyMix {
  std::string_view name;
  double updates = 0;         // a whole value is put
  double inserts = 0;         // of records that were not there
  double changes = 0;         // a value is read and put again
  bool reads_latest = false;  // records that were inserted last are popular, not any
};

// "a": as many updates as reads; "b": one update in twenty; "c": reads alone; "d": one insert in
// twenty, and the latest are read; "f": as many changes as reads; "wr": updates alone.
std::span<const KeyMix> key_mixes();
// Null: there is none of that name.
const KeyMix* find_key_mix(std::string_view name);

struct KeyOperation {
  enum class Kind : uint8_t { kRead, kUpdate, kInsert, kChange };
  Kind kind = Kind::kRead;
  uint64_t record = 0;
};

// Which records are drawn.
struct KeyDraw {
  YcsbDistribution distribution = YcsbDistribution::kZipfian;
  double exponent = kYcsbExponent;
  uint64_t records = 100'000;  // at least three
  uint64_t seed = 1;
};

// Operations of a mix, the same for the same seed. Inserts go on at record `records`, and once
// there is a quarter more they begin there again.
class KeyOperations {
 public:
  KeyOperations(const KeyMix& mix, const KeyDraw& draw);

  KeyOperation next();

 private:
  KeyOperation::Kind draw_kind();

  const KeyMix mix_;
  const YcsbKeys keys_;
  const uint64_t records_;
  uint64_t inserted_ = 0;
  Rng rng_;
};

std::string key_of_record(uint64_t record);
// Of so many bytes, kRecordValueBytesMin at least.
std::string value_of_record(uint64_t record, size_t bytes);
bool is_value_of(uint64_t record, std::string_view value);

}  // namespace cairn::loadgen
