// SPDX-License-Identifier: Apache-2.0
#include "tests/ring/test_keyspace.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/sip_hash.h"
#include "task/deadline.h"

namespace cairn::kv {

using task::Task;

namespace {

std::pair<uint64_t, std::string> place_of(std::string_view key) {
  return {TestKeyspace::place(key), std::string(key)};
}

}  // namespace

uint64_t TestKeyspace::place(std::string_view key) { return sip_hash(SipKey{1, 2}, as_bytes(key)); }

std::optional<Entry> TestKeyspace::find(std::string_view key) const {
  const auto found = medium_.entries.find(place_of(key));
  if (found == medium_.entries.end()) return std::nullopt;
  return found->second;
}

Task<Result<void>> TestKeyspace::wait() {
  const Duration time{
      static_cast<int64_t>(env_.rng().below(env_.rng().bernoulli(0.02) ? 20'000'000 : 200'000))};
  const Result<void> slept = co_await task::sleep_for(env_, time, env_.stop_token());
  co_return slept;
}

Task<Result<std::optional<Entry>>> TestKeyspace::get(std::string_view key) {
  const std::string mine(key);
  Result<void> waited = co_await wait();
  if (waited && medium_.get_time.ns > 0) {
    waited = co_await task::sleep_for(env_, medium_.get_time, env_.stop_token());
  }
  if (!waited) co_return fail(waited.error());
  std::optional<Entry> entry = find(mine);
  const Result<void> again = co_await wait();
  if (!again) co_return fail(again.error());
  co_return entry;
}

Task<Result<std::optional<Meta>>> TestKeyspace::look(std::string_view key) {
  const Result<std::optional<Entry>> entry = co_await get(key);
  if (!entry) co_return fail(entry.error());
  if (!*entry) co_return std::optional<Meta>();
  co_return std::optional<Meta>((*entry)->meta);
}

Task<Result<void>> TestKeyspace::transact(std::span<const std::string_view> keys, Change& change) {
  CHECK(keys.size() == 1);
  const std::string key(keys[0]);
  std::unique_ptr<Lock>& lock = locks_[key];
  if (!lock) lock = std::make_unique<Lock>();
  ++lock->users;
  Lock& mine = *lock;
  Result<void> result = co_await mine.turn.acquire(1, env_.stop_token());
  if (result) {
    result = co_await wait();
    Edit edit;
    if (result) {
      const std::optional<Entry> now = find(key);
      result = change.decide({&now, 1}, {&edit, 1});
    }
    if (result) {
      const Result<void> waited = co_await wait();
      if (!waited) result = waited;
      // Of a change that a crash ended nobody knows whether it is there.
      if (waited || (edit.kind != Edit::Kind::kKeep && env_.rng().bernoulli(0.5))) {
        if (edit.kind == Edit::Kind::kErase) medium_.entries.erase(place_of(key));
        if (edit.kind == Edit::Kind::kPut) {
          Entry& entry = medium_.entries[place_of(key)];
          entry.meta = {.version = ++medium_.version, .size = edit.value.size(), .expires = {}};
          entry.value = std::move(edit.value);
        }
      }
      if (result) result = co_await wait();
    }
    mine.turn.release();
  }
  if (--mine.users == 0) locks_.erase(key);
  co_return result;
}

Task<Result<ScanPage>> TestKeyspace::scan(uint64_t cursor, size_t count) {
  const Result<void> slept = co_await task::sleep_for(env_, medium_.scan_time, env_.stop_token());
  if (!slept) co_return fail(slept.error());
  const Result<void> waited = co_await wait();
  if (!waited) co_return fail(waited.error());
  ScanPage page;
  auto at = medium_.entries.lower_bound({cursor, ""});
  for (; at != medium_.entries.end() && page.keys.size() < count; ++at) {
    page.keys.push_back(at->first.second);
  }
  page.next = at == medium_.entries.end() ? 0 : at->first.first;
  co_return page;
}

Task<Result<std::optional<std::string>>> TestKeyspace::random_key() {
  if (medium_.entries.empty()) co_return std::optional<std::string>();
  co_return std::optional<std::string>(medium_.entries.begin()->first.second);
}

Task<Result<void>> TestKeyspace::clear() {
  medium_.entries.clear();
  co_return Result<void>{};
}

}  // namespace cairn::kv
