// SPDX-License-Identifier: Apache-2.0
#include "kv/key_table.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace cairn::kv {

namespace {

// With each insertion; more than one, so that growing ends before the table is full again.
constexpr size_t kSplitsPerInsertion = 4;

}  // namespace

KeyTable::KeyTable(const SipKey& secret) : secret_(secret), buckets_(size_t{1} << kBitsMin) {}

KeyTable::~KeyTable() { delete_all(); }

void KeyTable::delete_all() {
  for (std::vector<Record*>* table : {&buckets_, &old_}) {
    for (Record* record : *table) {
      while (record != nullptr) delete std::exchange(record, record->next);
    }
  }
}

const Record* const* KeyTable::bucket_of(uint64_t hash) const {
  if (!old_.empty()) {
    const size_t index = hash >> (64 - (bits_ - 1));
    if (index >= split_) return &old_[index];
  }
  return &buckets_[hash >> (64 - bits_)];
}

Record** KeyTable::bucket_of(uint64_t hash) {
  return const_cast<Record**>(std::as_const(*this).bucket_of(hash));
}

Record* KeyTable::find(std::string_view key) const {
  const uint64_t hash = sip_hash(secret_, as_bytes(key));
  const Record* record = *bucket_of(hash);
  while (record != nullptr && (record->hash != hash || record->key != key)) record = record->next;
  return const_cast<Record*>(record);
}

Record& KeyTable::insert(std::string_view key) {
  if (!old_.empty()) {
    split_some();
  } else if (size_ >= buckets_.size()) {
    grow();
  }
  auto* const record = new Record;
  record->hash = sip_hash(secret_, as_bytes(key));
  record->key = key;
  Record** const bucket = bucket_of(record->hash);
  record->next = std::exchange(*bucket, record);
  ++size_;
  return *record;
}

void KeyTable::erase(Record& record) {
  Record** at = bucket_of(record.hash);
  while (*at != nullptr && *at != &record) at = &(*at)->next;
  CHECK(*at == &record, "a record is in the table that it is erased from");
  *at = record.next;
  delete &record;
  --size_;
}

void KeyTable::clear() {
  delete_all();
  bits_ = kBitsMin;
  buckets_ = std::vector<Record*>(size_t{1} << kBitsMin);
  old_ = {};
  split_ = 0;
  size_ = 0;
}

void KeyTable::grow() {
  old_ = std::move(buckets_);
  split_ = 0;
  ++bits_;
  buckets_ = std::vector<Record*>(size_t{1} << bits_);
  split_some();
}

void KeyTable::split_some() {
  const size_t end = std::min(split_ + kSplitsPerInsertion, old_.size());
  for (; split_ < end; ++split_) {
    Record* record = std::exchange(old_[split_], nullptr);
    while (record != nullptr) {
      Record* const next = record->next;
      Record*& bucket = buckets_[record->hash >> (64 - bits_)];
      record->next = std::exchange(bucket, record);
      record = next;
    }
  }
  if (split_ == old_.size()) old_ = {};
}

uint64_t KeyTable::scan(uint64_t position, size_t count, std::vector<Record*>& into) const {
  const size_t end = into.size() + count;
  for (size_t visits = 0; visits < count * 10 && into.size() < end; ++visits) {
    const bool is_old = !old_.empty() && (position >> (64 - (bits_ - 1))) >= split_;
    const int shift = is_old ? 64 - (bits_ - 1) : 64 - bits_;
    for (const Record* record = *bucket_of(position); record != nullptr; record = record->next) {
      into.push_back(const_cast<Record*>(record));
    }
    // Past the last bucket this is 0 again.
    position = ((position >> shift) + 1) << shift;
    if (position == 0) return 0;
  }
  return position;
}

}  // namespace cairn::kv
