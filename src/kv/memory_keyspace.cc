// SPDX-License-Identifier: Apache-2.0
#include "kv/memory_keyspace.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace cairn::kv {

namespace {

// How many keys one sweep erases at most, and how far apart sweeps are: the wall clock may step, so
// an end that is far away is looked at again.
constexpr size_t kSweepKeysMax = 128;
constexpr Duration kSweepMax = 1_s;

SipKey draw_secret(env::Env& env) {
  SipKey secret{};
  env.fill_secret(std::as_writable_bytes(std::span(secret)));
  return secret;
}

uint64_t footprint(size_t key_size, size_t value_size) {
  return key_size + value_size + sizeof(Record) + sizeof(Record*);
}

Result<void> check_key(std::string_view key) {
  if (key.empty()) return fail(Errc::kInvalid, "a key is empty");
  if (key.size() > kKeyBytesMax) return fail(Errc::kInvalid, "a key is longer than 65536 bytes");
  return {};
}

Meta meta_of(const Record& record) {
  Meta meta{.version = record.version, .size = record.value.size(), .expires = std::nullopt};
  if (record.expires != kNeverExpires) meta.expires = record.expires;
  return meta;
}

}  // namespace

MemoryKeyspace::MemoryKeyspace(env::Env& env, const MemoryKeyspaceOptions& options)
    : env_(env),
      bytes_max_(options.bytes_max),
      table_(draw_secret(env)),
      sweep_(&MemoryKeyspace::on_sweep) {
  sweep_.keyspace = this;
}

Record* MemoryKeyspace::find(std::string_view key, WallTime now) {
  Record* const record = table_.find(key);
  if (record == nullptr || record->expires > now) return record;
  erase(*record);
  return nullptr;
}

void MemoryKeyspace::erase(Record& record) {
  set_expiry(record, kNeverExpires);
  bytes_ -= footprint(record.key.size(), record.value.size());
  table_.erase(record);
}

void MemoryKeyspace::set_expiry(Record& record, WallTime expires) {
  if (record.expires != kNeverExpires) expiring_.erase({record.expires, record.version});
  record.expires = expires;
}

task::Task<Result<std::optional<Entry>>> MemoryKeyspace::get(std::string_view key) {
  if (const Result<void> valid = check_key(key); !valid) co_return fail(valid.error());
  const Record* const record = find(key, env_.wall_now());
  if (record == nullptr) co_return std::optional<Entry>();
  co_return std::optional<Entry>({.meta = meta_of(*record), .value = record->value});
}

task::Task<Result<std::optional<Meta>>> MemoryKeyspace::look(std::string_view key) {
  if (const Result<void> valid = check_key(key); !valid) co_return fail(valid.error());
  const Record* const record = find(key, env_.wall_now());
  if (record == nullptr) co_return std::optional<Meta>();
  co_return std::optional<Meta>(meta_of(*record));
}

std::vector<std::optional<Entry>> MemoryKeyspace::entries(std::span<const std::string_view> keys,
                                                          Change::Needs needs, WallTime now) {
  std::vector<std::optional<Entry>> found(keys.size());
  if (needs == Change::Needs::kNothing) return found;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Record* const record = find(keys[i], now);
    if (record == nullptr) continue;
    found[i].emplace(Entry{.meta = meta_of(*record), .value = {}});
    if (needs == Change::Needs::kValues) found[i]->value = record->value;
  }
  return found;
}

Result<void> MemoryKeyspace::check(std::span<const std::string_view> keys,
                                   std::span<const Edit> edits, WallTime now) {
  uint64_t more = 0;
  uint64_t less = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (edits[i].kind == Edit::Kind::kKeep) continue;
    if (const Record* const record = find(keys[i], now); record != nullptr) {
      less += footprint(keys[i].size(), record->value.size());
    }
    if (edits[i].kind == Edit::Kind::kErase) continue;
    if (edits[i].value.size() > kValueBytesMax) {
      return fail(Errc::kInvalid, "a value is longer than 16777216 bytes");
    }
    more += footprint(keys[i].size(), edits[i].value.size());
  }
  if (more > less && bytes_ - less + more > bytes_max_) {
    return fail(Errc::kNoSpace, "the memory for keys and values is full");
  }
  return {};
}

void MemoryKeyspace::apply(std::string_view key, Edit& edit, WallTime now) {
  if (edit.kind == Edit::Kind::kKeep) return;
  Record* record = find(key, now);
  if (edit.kind == Edit::Kind::kErase) {
    if (record != nullptr) erase(*record);
    return;
  }
  if (record == nullptr) {
    record = &table_.insert(key);
  } else {
    set_expiry(*record, kNeverExpires);
    bytes_ -= footprint(key.size(), record->value.size());
  }
  record->version = ++version_;
  record->value = std::move(edit.value);
  bytes_ += footprint(key.size(), record->value.size());
  record->expires = edit.expires.value_or(kNeverExpires);
  if (record->expires != kNeverExpires) {
    expiring_.emplace(std::pair(record->expires, record->version), record);
  }
}

task::Task<Result<void>> MemoryKeyspace::transact(std::span<const std::string_view> keys,
                                                  Change& change) {
  for (const std::string_view key : keys) {
    if (const Result<void> valid = check_key(key); !valid) co_return valid;
  }
  const WallTime now = env_.wall_now();
  const std::vector<std::optional<Entry>> found = entries(keys, change.needs, now);
  std::vector<Edit> edits(keys.size());
  if (const Result<void> decided = change.decide(found, edits); !decided) co_return decided;
  if (const Result<void> fits = check(keys, edits, now); !fits) co_return fits;
  for (size_t i = 0; i < keys.size(); ++i) apply(keys[i], edits[i], now);
  arm_sweep(now);
  co_return Result<void>();
}

task::Task<Result<ScanPage>> MemoryKeyspace::scan(uint64_t cursor, size_t count) {
  std::vector<Record*> records;
  ScanPage page{.next = table_.scan(cursor, std::max<size_t>(count, 1), records), .keys = {}};
  const WallTime now = env_.wall_now();
  for (Record* record : records) {
    if (record->expires > now) {
      page.keys.push_back(record->key);
    } else {
      erase(*record);
    }
  }
  co_return page;
}

task::Task<Result<std::optional<std::string>>> MemoryKeyspace::random_key() {
  const WallTime now = env_.wall_now();
  uint64_t position = env_.rng().next();
  std::vector<Record*> records;
  while (table_.size() > 0) {
    records.clear();
    position = table_.scan(position, 1, records);
    std::erase_if(records, [&](Record* record) {
      const bool is_over = record->expires <= now;
      if (is_over) erase(*record);
      return is_over;
    });
    if (records.empty()) continue;
    co_return std::optional<std::string>(records[env_.rng().below(records.size())]->key);
  }
  co_return std::optional<std::string>();
}

task::Task<Result<void>> MemoryKeyspace::clear() {
  expiring_.clear();
  table_.clear();
  bytes_ = 0;
  co_return Result<void>();
}

void MemoryKeyspace::on_sweep(task::Timer& timer) {
  static_cast<SweepTimer&>(timer).keyspace->sweep();
}

void MemoryKeyspace::sweep() {
  const WallTime now = env_.wall_now();
  for (size_t i = 0; i < kSweepKeysMax && !expiring_.empty(); ++i) {
    const auto first = expiring_.begin();
    if (first->first.first > now) break;
    erase(*first->second);
  }
  arm_sweep(now);
}

void MemoryKeyspace::arm_sweep(WallTime now) {
  if (expiring_.empty()) return;
  const int64_t until = expiring_.begin()->first.first.ns - now.ns;
  const Time when = env_.now() + Duration{std::clamp<int64_t>(until, 0, kSweepMax.ns)};
  if (sweep_.is_armed() && sweep_.when() <= when) return;
  env_.disarm(sweep_);
  env_.arm(sweep_, when);
}

}  // namespace cairn::kv
