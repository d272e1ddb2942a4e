// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/cluster_keyspace.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "task/deadline.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

namespace {

constexpr size_t kPageKeys = 64;
constexpr uint64_t kDrawnFrom = 64;  // a random key is one of so many, if there are
constexpr int64_t kNsPerMs = 1'000'000;

constexpr const char* kNobody = "no replica of the key answers; 'cairn kv ring show' says why";

std::optional<WallTime> end_of(int64_t expires_ms) {
  if (expires_ms == kNoEnd) return std::nullopt;
  return WallTime{std::clamp<int64_t>(expires_ms, 0, INT64_MAX / kNsPerMs) * kNsPerMs};
}

int64_t ms_of(std::optional<WallTime> end) {
  if (!end) return kNoEnd;
  return end->ns / kNsPerMs + (end->ns % kNsPerMs > 0 ? 1 : 0);
}

std::optional<Entry> entry_of(Found found, bool with_value) {
  if (!found.value) return std::nullopt;
  Entry entry{.meta = {.version = found.version,
                       .size = found.value->size(),
                       .expires = end_of(found.expires_ms)},
              .value = {}};
  if (with_value) entry.value = std::move(*found.value);
  return entry;
}

// Of a read: nothing was done.
std::unexpected<Error> unread(const Error& error) {
  return error == Errc::kTimedOut ? fail(Errc::kUnreachable, kNobody) : fail(error);
}

Command command_of(Edit edit) {
  if (edit.kind == Edit::Kind::kErase) return {.kind = Command::Kind::kErase};
  return {.kind = Command::Kind::kPut,
          .value = std::move(edit.value),
          .expires_ms = ms_of(edit.expires)};
}

}  // namespace

Task<Result<std::optional<Entry>>> ClusterKeyspace::get(std::string_view key) {
  Result<Found> found = co_await client_.get(std::string(key));
  if (!found) co_return unread(found.error());
  co_return entry_of(std::move(*found), true);
}

Task<Result<std::optional<Meta>>> ClusterKeyspace::look(std::string_view key) {
  const Result<std::optional<Entry>> entry = co_await get(key);
  if (!entry) co_return fail(entry.error());
  if (!*entry) co_return std::optional<Meta>();
  co_return std::optional<Meta>((*entry)->meta);
}

Task<Result<void>> ClusterKeyspace::transact(std::span<const std::string_view> keys,
                                             Change& change) {
  Result<void> done;
  if (keys.size() == 1) {
    done = co_await change_one(std::string(keys[0]), change);
  } else {
    done = co_await change_each(keys, change);
  }
  co_return done;
}

Task<Result<void>> ClusterKeyspace::change_one(std::string key, Change& change) {
  task::Deadline deadline(env_, env_.now() + timeout_, env_.stop_token());
  Result<void> done;
  if (change.needs == Change::Needs::kNothing) {
    const std::optional<Entry> nothing;
    Edit edit;
    done = change.decide({&nothing, 1}, {&edit, 1});
    if (done) done = co_await put(std::move(key), std::move(edit), deadline.token());
    co_return done;
  }
  // Those of this node do not get into each other's way.
  const Result<void> mine = co_await turns_.take(key, deadline.token());
  done = mine ? mine : Result<void>(unread(mine.error()));
  if (mine) done = co_await change_by_version(key, change, deadline.token());
  turns_.done(key, mine);
  co_return done;
}

Task<Result<void>> ClusterKeyspace::change_by_version(std::string key, Change& change,
                                                      CancelToken token) {
  while (true) {
    Result<Found> found = co_await client_.get(key, token);
    if (!found) co_return unread(found.error());
    const uint64_t version = found->version;
    const std::optional<Entry> now =
        entry_of(std::move(*found), change.needs == Change::Needs::kValues);
    Edit edit;
    const Result<void> decided = change.decide({&now, 1}, {&edit, 1});
    if (!decided) co_return decided;
    const bool is_same = edit.kind == Edit::Kind::kErase && !now;
    if (edit.kind == Edit::Kind::kKeep || is_same) co_return Result<void>();
    Command command = command_of(std::move(edit));
    command.kind =
        command.kind == Command::Kind::kErase ? Command::Kind::kSwapErase : Command::Kind::kSwap;
    command.version = version;
    const Result<Outcome> outcome = co_await client_.write(key, std::move(command), token);
    if (!outcome) co_return fail(outcome.error());
    if (outcome->done) co_return Result<void>();
  }
}

Task<Result<void>> ClusterKeyspace::put(std::string key, Edit edit, CancelToken token) {
  if (edit.kind == Edit::Kind::kKeep) co_return Result<void>();
  const Result<Outcome> outcome =
      co_await client_.write(std::move(key), command_of(std::move(edit)), token);
  if (!outcome) co_return fail(outcome.error());
  co_return Result<void>();
}

Task<Result<void>> ClusterKeyspace::change_each(std::span<const std::string_view> keys,
                                                Change& change) {
  std::vector<std::optional<Entry>> now(keys.size());
  for (size_t i = 0; i < keys.size() && change.needs != Change::Needs::kNothing; ++i) {
    Result<Found> found = co_await client_.get(std::string(keys[i]));
    if (!found) co_return unread(found.error());
    now[i] = entry_of(std::move(*found), change.needs == Change::Needs::kValues);
  }
  std::vector<Edit> edits(keys.size());
  const Result<void> decided = change.decide(now, edits);
  if (!decided) co_return decided;
  const bool changes =
      std::ranges::any_of(edits, [](const Edit& each) { return each.kind != Edit::Kind::kKeep; });
  if (changes && change.needs != Change::Needs::kNothing) {
    co_return fail(Errc::kUnsupported, "a cluster changes one key at a time, by itself");
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    task::Deadline deadline(env_, env_.now() + timeout_, env_.stop_token());
    const Result<void> done =
        co_await put(std::string(keys[i]), std::move(edits[i]), deadline.token());
    if (!done) co_return done;
  }
  co_return Result<void>();
}

Task<Result<ScanPage>> ClusterKeyspace::scan(uint64_t cursor, size_t count) {
  return replica_.scan(cursor, count);
}

Task<Result<std::optional<std::string>>> ClusterKeyspace::random_key() {
  std::optional<std::string> drawn;
  uint64_t cursor = 0;
  const uint64_t wanted = env_.rng().below(kDrawnFrom);
  uint64_t seen = 0;
  do {
    Result<ScanPage> page = co_await scan(cursor, kPageKeys);
    if (!page) co_return fail(page.error());
    cursor = page->next;
    for (std::string& key : page->keys) {
      drawn = std::move(key);
      if (seen++ == wanted) co_return drawn;
    }
  } while (cursor != 0);
  co_return drawn;
}

Task<Result<void>> ClusterKeyspace::clear() {
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await scan(cursor, kPageKeys);
    if (!page) co_return fail(page.error());
    cursor = page->next;
    for (const std::string& key : page->keys) {
      const Result<Outcome> erased =
          co_await client_.write(key, {.kind = Command::Kind::kErase}, env_.stop_token());
      if (!erased) co_return fail(erased.error());
    }
  } while (cursor != 0);
  co_return Result<void>();
}

Task<Result<uint64_t>> ClusterKeyspace::count() {
  uint64_t count = 0;
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await scan(cursor, kPageKeys);
    if (!page) co_return fail(page.error());
    cursor = page->next;
    count += page->keys.size();
  } while (cursor != 0);
  counted_ = count;
  co_return count;
}

}  // namespace cairn::kv::chain
