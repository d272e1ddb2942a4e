// SPDX-License-Identifier: Apache-2.0
// The keys of a node one after the other: for scans, and to erase those whose end has come.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kv/chain/replica.h"
#include "task/deadline.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

namespace {

constexpr size_t kPageKeys = 64;
constexpr Duration kPause = 100_ms;  // between pages

}  // namespace

Task<Result<ScanPage>> Replica::scan(uint64_t cursor, size_t count) {
  Result<ScanPage> page = co_await for_upkeep_.scan(cursor, count);
  if (page && page->unreadable > 0) {
    const bool is_repaired = co_await repair_unnamed();
    if (is_repaired) page = co_await for_upkeep_.scan(cursor, count);
  }
  if (!page) co_return page;
  ScanPage named{.next = page->next, .keys = {}, .unreadable = page->unreadable};
  for (const std::string& stored : page->keys) {
    std::optional<std::string> key = user_key(stored);
    if (!key || !view_ || view_->range_of(ring::hash_of(*key)).named() != self_) continue;
    const Result<std::optional<Record>> record = co_await read_record(for_upkeep_, *key);
    // One that nobody can read is told: who reads it is told the error.
    const bool is_damaged = !record && record.error() == Errc::kCorrupt;
    if (!record && !is_damaged) co_return fail(record.error());
    if (is_damaged || (*record && (*record)->is_there(now_ms()))) {
      named.keys.push_back(std::move(*key));
    }
  }
  co_return named;
}

void Replica::note_end(const Record& record) {
  if (record.expires_ms != kNoEnd) has_ends_ = saw_ends_ = true;
}

// Page by page, as long as there are keys that end.
Task<void> Replica::erase_ended() {
  while (eraser_ == 0) env_.fill_secret(std::as_writable_bytes(std::span(&eraser_, 1)));
  uint64_t cursor = 0;
  while (!stop_.requested()) {
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, kPause, stop_.token());
    if (!has_ends_ || !may_act()) continue;
    if (cursor == 0) saw_ends_ = false;
    const Result<ScanPage> page = co_await for_upkeep_.scan(cursor, kPageKeys);
    if (!page) continue;
    const Result<void> looked = co_await look_for_ends(page->keys);
    // What cannot be read is looked at again.
    if (!looked) saw_ends_ = true;
    cursor = page->next;
    if (cursor == 0) has_ends_ = saw_ends_;
  }
}

Task<Result<void>> Replica::look_for_ends(const std::vector<std::string>& stored_keys) {
  Result<void> result;
  for (const std::string& stored : stored_keys) {
    const std::optional<std::string> key = user_key(stored);
    if (!key || stop_.requested()) continue;
    const Result<std::optional<Record>> record = co_await read_record(for_upkeep_, *key);
    if (!record) result = fail(record.error());
    if (!record || !*record || (*record)->expires_ms == kNoEnd) continue;
    saw_ends_ = true;
    if (!(*record)->is_there(now_ms())) co_await erase_if_ended(*key, (*record)->version);
  }
  co_return result;
}

// If this is the head, and the key's newest record is still the one that was seen.
Task<void> Replica::erase_if_ended(std::string key, uint64_t version) {
  const std::optional<Spot> here = spot(ring::hash_of(key));
  if (!here || here->position != 0) co_return;
  WriteRequest request{.key = std::move(key),
                       .epoch = here->epoch,
                       .id = {.client = eraser_, .number = ++last_erase_},
                       .since = version,
                       .command = {.kind = Command::Kind::kSwapErase, .version = version}};
  const WriteReply reply = co_await write_through(for_upkeep_, std::move(request), stop_.token());
  if (reply.status == Status::kDone && reply.outcome.done) ++stats_.ended;
}

}  // namespace cairn::kv::chain
