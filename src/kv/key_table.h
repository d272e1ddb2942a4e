// SPDX-License-Identifier: Apache-2.0
// KeyTable: records by key in memory, in the order of their hashes, which is that of scans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sip_hash.h"
#include "base/units.h"

namespace cairn::kv {

inline constexpr WallTime kNeverExpires{INT64_MAX};

// A key and what belongs to it. Its address stays until it is erased.
struct Record {
  Record* next = nullptr;  // of the same bucket
  uint64_t hash = 0;
  uint64_t version = 0;
  WallTime expires = kNeverExpires;
  std::string key;
  std::string value;
};

// A hash table whose buckets are ranges of hashes, in order: a position in a scan is a hash, and
// stays one while the table grows. It grows a few buckets at a time, with each insertion, so that
// no call waits for all of it. It does not shrink, except by clear().
class KeyTable {
 public:
  // `secret` keeps those who choose keys from choosing buckets.
  explicit KeyTable(const SipKey& secret);
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // Null: there is none. The record is the caller's to change, but for its key.
  Record* find(std::string_view key) const;
  // The key is not there yet.
  Record& insert(std::string_view key);
  void erase(Record& record);
  void clear();
  size_t size() const { return size_; }

  // Appends the records from `position` (0: the first) on to `into`, bucket by bucket, until there
  // are `count` or ten times as many buckets were looked at. Gives the position to go on from; 0:
  // that was the end.
  uint64_t scan(uint64_t position, size_t count, std::vector<Record*>& into) const;

 private:
  static constexpr int kBitsMin = 4;

  Record** bucket_of(uint64_t hash);
  const Record* const* bucket_of(uint64_t hash) const;
  void grow();
  void split_some();
  void delete_all();

  const SipKey secret_;
  int bits_ = kBitsMin;
  std::vector<Record*> buckets_;  // 2^bits_
  std::vector<Record*> old_;      // while growing: half as many, of which the first are split
  size_t split_ = 0;
  size_t size_ = 0;
};

}  // namespace cairn::kv
