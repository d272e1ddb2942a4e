// SPDX-License-Identifier: Apache-2.0
#include "kv/store/transaction.h"

#include <algorithm>
#include <utility>

#include "kv/store/reader.h"
#include "kv/store/segment_edit.h"
#include "kv/store/writer.h"
#include "task/when_all.h"

namespace cairn::kv::store {

using task::CancelToken;
using task::Task;

namespace {

constexpr size_t kReadsMax = 64;  // of one change at once

// In milliseconds, never earlier than it was said; 0 says never.
uint64_t to_ms(const std::optional<WallTime>& expires) {
  if (!expires) return 0;
  return expires->ns <= 0 ? 1 : (static_cast<uint64_t>(expires->ns) + 999'999) / 1'000'000;
}

Item* find(std::vector<Item>& items, uint64_t fingerprint) {
  const auto found = std::ranges::find(items, fingerprint, &Item::fingerprint);
  return found == items.end() ? nullptr : &*found;
}

Result<void> first_error(const std::vector<Result<void>>& results) {
  for (const Result<void>& one : results) {
    if (!one) return one;
  }
  return {};
}

}  // namespace

Transaction::Transaction(Core& core, std::span<const std::string_view> keys, Change& change)
    : core_(core), keys_(keys), change_(change), now_(keys.size()), edits_(keys.size()) {
  std::vector<uint32_t> segments;
  targets_.reserve(keys.size());
  segments.reserve(keys.size());
  for (const std::string_view key : keys) {
    targets_.push_back({.hash = core.hash(key)});
    segments.push_back(targets_.back().hash.segment);
  }
  const auto by_lock = [](uint32_t a, uint32_t b) {
    return std::pair(SegmentLocks::index_of(a), a) < std::pair(SegmentLocks::index_of(b), b);
  };
  std::ranges::sort(segments, by_lock);
  segments.erase(std::ranges::unique(segments).begin(), segments.end());
  parts_.reserve(segments.size());
  held_.reserve(segments.size());
  for (const uint32_t segment : segments) parts_.push_back({.write = {.segment = segment}});
  for (Target& target : targets_) {
    const auto at = std::ranges::lower_bound(segments, target.hash.segment, by_lock);
    target.part = static_cast<size_t>(at - segments.begin());
    ++parts_[target.part].targets;
  }
}

Transaction::~Transaction() { core_.pending_units -= pending_units_; }

// Each segment as it is, and as many more buckets as its new keys may need.
uint64_t Transaction::buckets_needed() const {
  const size_t each = items_in_bucket(core_.io.block_bytes());
  uint64_t sum = 0;
  for (const Part& part : parts_) {
    sum += core_.table.at(part.write.segment).length + (part.targets + each - 1) / each;
  }
  return sum;
}

// Has the locks and enough buckets.
Task<Result<void>> Transaction::lock(CancelToken token) {
  while (true) {
    const uint64_t needed = buckets_needed();
    if (needed > commit_buckets_max(core_.superblock.layout)) {
      co_return fail(Errc::kLimit, "a change has more keys than one commit holds");
    }
    if (buckets_.count() < needed) {
      buckets_.release();
      if (!core_.key_space.try_reserve(needed, LogSpace::User::kWriter)) {
        ++core_.stats.space_waits;
        const Result<void> reserved =
            co_await core_.key_space.reserve(needed, LogSpace::User::kWriter, token);
        if (!reserved) co_return reserved;
      }
      buckets_ = Room(core_.key_space, needed);
    }
    size_t previous = SIZE_MAX;
    for (const Part& part : parts_) {
      const size_t index = SegmentLocks::index_of(part.write.segment);
      if (index == std::exchange(previous, index)) continue;
      task::Semaphore& one = core_.locks.at(index);
      const Result<void> locked = co_await one.acquire(1, token);
      if (!locked) {
        unlock();
        co_return locked;
      }
      held_.emplace_back(one, 1);
    }
    if (buckets_needed() <= buckets_.count()) co_return Result<void>();
    unlock();  // a segment has grown meanwhile
  }
}

Task<Result<void>> Transaction::read_segment(Part& part) {
  const uint32_t segment = part.write.segment;
  const Result<KeyLog::Chain> chain = co_await core_.keys->read(segment, core_.table.at(segment));
  if (!chain) co_return fail(chain.error());
  part.write.items.clear();
  append_items(chain->buckets, core_.io.block_bytes(), part.write.items);
  co_return Result<void>();
}

Task<Result<void>> Transaction::read_segments() {
  if (parts_.size() == 1) {
    Result<void> read = co_await read_segment(parts_.front());
    has_read_ = read.has_value();
    co_return read;
  }
  for (size_t begin = 0; begin < parts_.size(); begin += kReadsMax) {
    std::vector<Task<Result<void>>> reading;
    for (size_t i = begin; i < std::min(begin + kReadsMax, parts_.size()); ++i) {
      reading.push_back(read_segment(parts_[i]));
    }
    const std::vector<Result<void>> read = co_await task::when_all(std::move(reading));
    const Result<void> failed = first_error(read);
    if (!failed) co_return failed;
  }
  has_read_ = true;
  co_return Result<void>();
}

std::vector<std::optional<Item>> Transaction::items_now() const {
  std::vector<std::optional<Item>> items(targets_.size());
  for (size_t i = 0; i < targets_.size(); ++i) {
    const std::vector<Item>& all = parts_[targets_[i].part].write.items;
    const auto found = std::ranges::find(all, targets_[i].hash.fingerprint, &Item::fingerprint);
    if (found != all.end() && !core_.has_expired(*found)) items[i] = *found;
  }
  return items;
}

Task<Result<void>> Transaction::read_values() {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (!now_[i]) continue;
    const Item item = *items_now()[i];
    Result<std::string> value = co_await read_value(core_, item, keys_[i]);
    if (!value) co_return fail(value.error());
    now_[i]->value = std::move(*value);
  }
  co_return Result<void>();
}

// What decide() wants to know.
Task<Result<void>> Transaction::look() {
  if (change_.needs == Change::Needs::kNothing) co_return Result<void>();
  Result<void> read = co_await read_segments();
  if (!read) co_return read;
  const std::vector<std::optional<Item>> items = items_now();
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i]) now_[i] = Entry{.meta = meta_of(*items[i]), .value = {}};
  }
  if (change_.needs == Change::Needs::kValues) read = co_await read_values();
  co_return read;
}

Result<void> Transaction::decide() {
  const Result<void> decided = change_.decide(now_, edits_);
  if (!decided) return decided;
  for (size_t i = 0; i < edits_.size(); ++i) {
    if (edits_[i].kind != Edit::Kind::kPut) continue;
    if (edits_[i].value.size() > kValueBytesMax) {
      return fail(Errc::kInvalid, "a value is longer than 16 MiB");
    }
    targets_[i].version = core_.next_version++;
  }
  return {};
}

// Of the value log. kNoSpace: more than may be live.
Result<uint64_t> Transaction::units_needed() const {
  uint64_t units = 0;
  bool inserts = false;
  for (size_t i = 0; i < edits_.size(); ++i) {
    if (edits_[i].kind != Edit::Kind::kPut) continue;
    inserts = true;
    units += record_units(keys_[i].size(), edits_[i].value.size());
  }
  const Layout& layout = core_.superblock.layout;
  const uint64_t live = core_.totals.live_units + core_.pending_units;
  if (units > 0 && live + units > live_units_max(layout)) {
    core_.want_purge();
    return fail(Errc::kNoSpace, "the value log is full");
  }
  if (inserts && core_.table.live_buckets() + parts_.size() > live_buckets_max(layout)) {
    core_.want_purge();
    return fail(Errc::kNoSpace, "the key log is full");
  }
  return units;
}

// Without the locks; then with them again.
Task<Result<void>> Transaction::wait_for_units(uint64_t units, CancelToken token) {
  const std::vector<std::optional<Item>> before = items_now();
  unlock();
  ++core_.stats.space_waits;
  const Result<void> reserved =
      co_await core_.value_space.reserve(units, LogSpace::User::kWriter, token);
  if (!reserved) co_return reserved;
  units_ = Room(core_.value_space, units);
  const Result<void> locked = co_await lock(token);
  if (!locked || change_.needs == Change::Needs::kNothing) co_return locked;
  const Result<void> read = co_await read_segments();
  if (!read) co_return read;
  const std::vector<std::optional<Item>> after = items_now();
  const bool same = std::ranges::equal(before, after, [](const auto& a, const auto& b) {
    return a.has_value() == b.has_value() && (!a || a->version == b->version);
  });
  if (!same) co_return fail(Errc::kLimit, "a key changed while its change waited for room");
  co_return Result<void>();
}

Task<Result<void>> Transaction::reserve_units(CancelToken token) {
  const Result<uint64_t> units = units_needed();
  if (!units) co_return fail(units.error());
  pending_units_ = *units;
  core_.pending_units += *units;
  if (*units == 0) co_return Result<void>();
  if (core_.value_space.try_reserve(*units, LogSpace::User::kWriter)) {
    units_ = Room(core_.value_space, *units);
    co_return Result<void>();
  }
  Result<void> waited = co_await wait_for_units(*units, token);
  co_return waited;
}

// Up to all that is known before anything is written.
Task<Result<void>> Transaction::prepare(CancelToken token) {
  Result<void> done = co_await lock(token);
  if (done) done = co_await look();
  if (done) done = decide();
  if (done) done = co_await reserve_units(token);
  co_return done;
}

Task<Result<void>> Transaction::write_target(size_t n) {
  const NewValue value{.hash = targets_[n].hash,
                       .key = keys_[n],
                       .value = edits_[n].value,
                       .version = targets_[n].version,
                       .is_durable = values_.are_durable};
  const Result<uint64_t> written = co_await write_value(core_, value, units_);
  if (!written) co_return fail(written.error());
  targets_[n].position = *written;
  co_return Result<void>();
}

// The one key's, without what several need.
Task<Result<void>> Transaction::write_value_of_one() {
  if (edits_.front().kind != Edit::Kind::kPut) {
    Result<void> read;
    if (!has_read_) read = co_await read_segments();
    co_return read;
  }
  Task<Result<void>> writing = write_target(0);
  Result<void> read;
  if (!has_read_) read = co_await read_segments();
  Result<void> written = co_await writing;
  co_return read ? written : read;
}

// Values go out while the segments are read.
Task<Result<void>> Transaction::write_values() {
  values_ = {.losses = core_.syncer.losses(), .are_durable = core_.syncer.wants_durable_writes()};
  if (edits_.size() == 1) {
    Result<void> done = co_await write_value_of_one();
    co_return done;
  }
  std::vector<Task<Result<void>>> writing;
  for (size_t i = 0; i < edits_.size(); ++i) {
    if (edits_[i].kind == Edit::Kind::kPut) writing.push_back(write_target(i));
  }
  Result<void> read;
  if (!has_read_) read = co_await read_segments();
  const std::vector<Result<void>> written = co_await task::when_all(std::move(writing));
  if (!read) co_return read;
  co_return first_error(written);
}

void Transaction::apply_to(Part& part, size_t target) {
  SegmentWrite& write = part.write;
  const Target& what = targets_[target];
  const Edit& edit = edits_[target];
  Item* old = find(write.items, what.hash.fingerprint);
  if (edit.kind == Edit::Kind::kKeep || (edit.kind == Edit::Kind::kErase && old == nullptr)) return;
  part.is_changed = true;
  if (old != nullptr) {
    write.unit_delta -= static_cast<int32_t>(units_of(*old));
  }
  if (edit.kind == Edit::Kind::kErase) {
    --write.key_delta;
    write.items.erase(write.items.begin() + (old - write.items.data()));
    return;
  }
  const Item item{.fingerprint = what.hash.fingerprint,
                  .place = core_.value_space.place_of(what.position),
                  .value_bytes = static_cast<uint32_t>(edit.value.size()),
                  .key_bytes = static_cast<uint32_t>(keys_[target].size()),
                  .version = what.version,
                  .expires_ms = to_ms(edit.expires),
                  .is_fresh = true};
  write.unit_delta += static_cast<int32_t>(units_of(item));
  core_.stats.user_bytes += item.key_bytes + item.value_bytes;
  if (old != nullptr) {
    *old = item;
  } else {
    ++write.key_delta;
    write.items.push_back(item);
  }
}

// Changes the segments as they were read.
Result<void> Transaction::apply() {
  for (Part& part : parts_) purge_expired(core_, part.write);
  for (size_t i = 0; i < targets_.size(); ++i) apply_to(parts_[targets_[i].part], i);
  const uint64_t chain_max = chain_buckets_max(core_.superblock.layout);
  for (const Part& part : parts_) {
    if (buckets_of(part.write.items.size(), core_.io.block_bytes()) > chain_max) {
      return fail(Errc::kNoSpace, "a segment has no room for more keys");
    }
  }
  return {};
}

Task<Result<void>> Transaction::commit() {
  std::vector<SegmentWrite> writes;
  for (Part& part : parts_) {
    if (part.is_changed) writes.push_back(std::move(part.write));
  }
  if (writes.empty()) co_return Result<void>();
  const uint64_t buckets = core_.keys->buckets_of_all(writes);
  const Result<void> done = co_await core_.keys->commit(writes, values_);
  if (done) {
    buckets_.used(buckets);
    core_.note_commit();
  }
  co_return done;
}

Task<Result<void>> Transaction::run(CancelToken token) {
  Result<void> done = co_await prepare(token);
  if (done) done = co_await write_values();
  if (done) done = apply();
  if (done) done = co_await commit();
  co_return done;
}

}  // namespace cairn::kv::store
