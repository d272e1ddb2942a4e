// SPDX-License-Identifier: Apache-2.0
// How a replica that joins gets what was there before, and how a node gets rid of what is not its
// own any more.
#include <algorithm>
#include <map>
#include <span>

#include "kv/chain/replica.h"
#include "task/deadline.h"

namespace cairn::kv::chain {

using task::Task;

namespace {

constexpr size_t kScanKeys = 64;
constexpr Duration kPause = 50_ms;
// Until a copy that lacks a damaged key is tried again, unless the view changes.
constexpr Duration kDamagedPause = 5_s;

}  // namespace

const ring::RingRange* Replica::range_now(RangeKey range) const {
  if (!view_) return nullptr;
  const ring::RingRange& found = view_->range_of(range.first);
  return found.end == range.first && found.epoch == range.second ? &found : nullptr;
}

std::set<Replica::RangeKey> Replica::ranges_to_wipe() const {
  std::set<RangeKey> ranges;
  for (const ring::RingRange& range : view_->ranges) {
    const std::optional<Spot> here = spot(range.end);
    if (here && here->state == ring::Replica::State::kJoining &&
        !wiped_.contains({range.end, range.epoch})) {
      ranges.insert({range.end, range.epoch});
    }
  }
  return ranges;
}

std::set<Replica::RangeKey> Replica::ranges_to_copy() const {
  std::set<RangeKey> ranges;
  for (const ring::RingRange& range : view_->ranges) {
    const std::optional<Spot> here = spot(range.end);
    if (here && here->position + 2 == range.chain.size() &&
        range.chain.back().state == ring::Replica::State::kJoining &&
        !copied_.contains({range.end, range.epoch})) {
      ranges.insert({range.end, range.epoch});
    }
  }
  return ranges;
}

// Whether there may be keys whose chains go on without this node, complete.
bool Replica::has_strangers() const { return swept_ < view_->epoch; }

void Replica::tell_copied() {
  std::erase_if(copied_, [this](RangeKey range) { return range_now(range) == nullptr; });
  std::erase_if(ready_, [this](RangeKey range) { return range_now(range) == nullptr; });
  std::erase_if(wiped_, [this](RangeKey range) { return range_now(range) == nullptr; });
  if (on_copied_) on_copied_({copied_.begin(), copied_.end()});
}

// What concerns this node alone: it never waits for other nodes, which wait for it while they copy.
Task<void> Replica::clean() {
  while (!stop_.requested()) {
    if (view_) {
      if (const std::set<RangeKey> ranges = ranges_to_wipe(); !ranges.empty()) {
        [[maybe_unused]] const Result<void> wiped = co_await wipe(ranges);
      }
      if (has_strangers() && may_act()) {
        [[maybe_unused]] const Result<void> swept = co_await sweep();
      }
    }
    co_await await_news(kPause);
  }
}

Task<void> Replica::fill_others() {
  while (!stop_.requested()) {
    Duration pause = kPause;
    if (view_) {
      if (const std::set<RangeKey> ranges = ranges_to_copy(); !ranges.empty()) {
        const Result<void> copied = co_await copy_ranges(ranges);
        if (!copied && copied.error() == Errc::kCorrupt) pause = kDamagedPause;
      }
      tell_copied();
    }
    co_await await_news(pause);
  }
}

Task<void> Replica::await_news(Duration at_most) {
  task::Deadline pause(env_, env_.now() + at_most, stop_.token());
  [[maybe_unused]] const Result<void> moved = co_await view_moved_.wait(pause.token());
}

// Erases a key, if the view still says so.
class Replica::WipeChange final : public Change {
 public:
  WipeChange(const Replica& replica, std::string key, std::optional<RangeKey> joining)
      : Change(Needs::kNothing), replica_(replica), key_(std::move(key)), joining_(joining) {}

  Result<void> decide(std::span<const std::optional<Entry>>, std::span<Edit> edits) override {
    const uint64_t hash = ring::hash_of(key_);
    const ring::RingRange& range = replica_.view_->range_of(hash);
    const bool goes = joining_ ? RangeKey(range.end, range.epoch) == *joining_ &&
                                     !replica_.wiped_.contains(*joining_)
                               : is_strange(range);
    if (goes) edits[0].kind = Edit::Kind::kErase;
    was_erased = goes;
    return {};
  }
  bool was_erased = false;

 private:
  bool is_strange(const ring::RingRange& range) const {
    return !range.position(replica_.self_) && range.running() >= replica_.view_->replicas;
  }

  const Replica& replica_;
  const std::string key_;
  const std::optional<RangeKey> joining_;
};

Task<Result<void>> Replica::wipe(std::set<RangeKey> ranges) {
  // Changes that were decided by an older view have ended when all units can be had.
  const Result<void> alone = co_await changes_.acquire(kChangesMax, stop_.token());
  if (!alone) co_return alone;
  changes_.release(kChangesMax);
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await for_upkeep_.scan(cursor, kScanKeys);
    if (!page) co_return fail(page.error());
    cursor = page->next;
    for (const std::string& stored : page->keys) {
      const std::optional<std::string> key = user_key(stored);
      if (!key) continue;
      const ring::RingRange& range = view_->range_of(ring::hash_of(*key));
      if (!ranges.contains({range.end, range.epoch})) continue;
      WipeChange change(*this, *key, RangeKey(range.end, range.epoch));
      const std::string_view view = stored;
      const Result<void> erased = co_await for_upkeep_.transact({&view, 1}, change);
      if (!erased) co_return erased;
      stats_.wiped += change.was_erased ? 1 : 0;
    }
    if (stop_.requested()) co_return fail(Errc::kCancelled, "wiping");
  } while (cursor != 0);
  for (const RangeKey range : ranges) {
    if (range_now(range) != nullptr) wiped_.insert(range);
  }
  co_return Result<void>{};
}

Task<Result<void>> Replica::sweep() {
  const ring::Epoch epoch = view_->epoch;
  uint64_t cursor = 0;
  do {
    const Result<ScanPage> page = co_await for_upkeep_.scan(cursor, kScanKeys);
    if (!page) co_return fail(page.error());
    cursor = page->next;
    for (const std::string& stored : page->keys) {
      const std::optional<std::string> key = user_key(stored);
      if (!key || view_->range_of(ring::hash_of(*key)).position(self_)) continue;
      WipeChange change(*this, *key, std::nullopt);
      const std::string_view view = stored;
      const Result<void> erased = co_await for_upkeep_.transact({&view, 1}, change);
      if (!erased) co_return erased;
      stats_.wiped += change.was_erased ? 1 : 0;
    }
    if (stop_.requested()) co_return fail(Errc::kCancelled, "sweeping");
    // Joining replicas wait for other work of this task.
  } while (cursor != 0 && view_->epoch == epoch);
  if (view_->epoch == epoch) swept_ = epoch;
  co_return Result<void>{};
}

// A range that lacks a damaged key is not complete, whatever becomes of the others.
Task<Result<void>> Replica::copy_ranges(std::set<RangeKey> ranges) {
  // What is stored once the other end is ready is passed on, and what was before is found here.
  for (const RangeKey range : ranges) {
    const Result<void> asked = co_await send_batch(range, {});
    if (!asked) co_return asked;
    if (range_now(range) != nullptr) ready_.insert(range);
  }
  Copy copy{.ranges = std::move(ranges), .lacking = {}, .batches = {}};
  uint64_t cursor = 0;
  size_t unreadable = 0;
  do {
    const Result<ScanPage> page = co_await for_upkeep_.scan(cursor, kScanKeys);
    if (!page) co_return fail(page.error());
    cursor = page->next;
    unreadable += page->unreadable;
    for (const std::string& stored : page->keys) {
      std::optional<std::string> key = user_key(stored);
      if (!key) continue;
      const Result<void> copied = co_await copy_key(copy, std::move(*key));
      if (!copied) co_return copied;
    }
  } while (cursor != 0);
  if (unreadable > 0) {
    const Result<void> named = co_await copy_by_names(copy);
    if (!named) co_return named;
  }
  for (const RangeKey range : copy.ranges) {
    const Result<void> sent = co_await send_batch(range, std::move(copy.batches[range].items));
    if (!sent) co_return sent;
    if (range_now(range) != nullptr && !copy.lacking.contains(range)) copied_.insert(range);
  }
  if (!copy.lacking.empty()) co_return fail(Errc::kCorrupt, "a key to copy is damaged everywhere");
  co_return Result<void>{};
}

Task<Result<void>> Replica::copy_key(Copy& copy, std::string key) {
  const ring::RingRange& range = view_->range_of(ring::hash_of(key));
  const RangeKey at{range.end, range.epoch};
  if (!copy.ranges.contains(at)) co_return Result<void>{};
  Result<std::optional<Record>> record = co_await read_record(for_upkeep_, key);
  if (!record && record.error() == Errc::kCorrupt) {
    copy.lacking.insert(at);
    co_return Result<void>{};
  }
  if (!record) co_return fail(record.error());
  if (!*record) co_return Result<void>{};
  CopyBatch& batch = copy.batches[at];
  batch.bytes += key.size() + (*record)->value.size();
  batch.items.push_back({std::move(key), std::move(**record)});
  if (batch.items.size() < kCopyKeysMax && batch.bytes < kCopyBytesMax - kChainValueMax) {
    co_return Result<void>{};
  }
  std::vector<CopyItem> items = std::move(batch.items);
  copy.batches.erase(at);
  const Result<void> sent = co_await send_batch(at, std::move(items));
  co_return sent;
}

// What others name comes once more. A range of which nobody else tells all keys lacks one, perhaps.
Task<Result<void>> Replica::copy_by_names(Copy& copy) {
  std::set<RangeKey> told;
  for (const auto& [address, ranges] : other_holders()) {
    if (std::ranges::none_of(copy.ranges, [&](RangeKey at) { return ranges.contains(at); })) {
      continue;
    }
    const Names names = co_await names_at(address);
    for (const std::string& key : names.keys) {
      const ring::RingRange& range = view_->range_of(ring::hash_of(key));
      if (!ranges.contains({range.end, range.epoch})) continue;
      const Result<void> copied = co_await copy_key(copy, key);
      if (!copied) co_return copied;
    }
    if (names.is_all) told.insert(ranges.begin(), ranges.end());
  }
  for (const RangeKey range : copy.ranges) {
    if (!told.contains(range)) copy.lacking.insert(range);
  }
  co_return Result<void>{};
}

// Until it has arrived, or the range is another one.
Task<Result<void>> Replica::send_batch(RangeKey range, std::vector<CopyItem> items) {
  const size_t count = items.size();
  const CopyRequest request{
      .range_end = range.first, .epoch = range.second, .items = std::move(items)};
  while (!stop_.requested()) {
    const std::optional<Spot> here = spot(range.first);
    if (range_now(range) == nullptr || !here || here->next.empty()) co_return Result<void>{};
    const Result<std::string> body = co_await peers_.call(
        here->next, Call::kCopy, 0, encode(request), options_.serve_timeout, stop_.token());
    const Result<PassReply> reply =
        body ? decode_pass_reply(as_bytes(*body)) : Result<PassReply>(fail(body.error()));
    const bool is_there = reply && reply->status == Status::kDone;
    if (is_there) stats_.copied += count;
    const Duration pause = is_there ? options_.copy_pause : options_.pass_retry;
    if (pause.ns > 0) {
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(env_, pause, stop_.token());
    }
    if (is_there) co_return Result<void>{};
  }
  co_return fail(Errc::kCancelled, "copying");
}

Task<PassReply> Replica::copy(CopyRequest request, task::CancelToken token) {
  const RangeKey at{request.range_end, request.epoch};
  const std::optional<Spot> here = spot(request.range_end);
  if (!here || range_now(at) == nullptr || here->state != ring::Replica::State::kJoining ||
      !may_act()) {
    co_return PassReply{.status = Status::kOtherView};
  }
  if (!wiped_.contains(at)) co_return PassReply{.status = Status::kNotReady};
  for (const CopyItem& item : request.items) {
    const bool is_ours = view_->range_of(ring::hash_of(item.key)).end == request.range_end;
    if (!is_ours || token.requested()) co_return PassReply{.status = Status::kFailed};
    const Result<void> done =
        co_await put_record(for_upkeep_, item.key, item.record, request.epoch);
    if (!done) co_return PassReply{.status = status_of(done.error())};
  }
  co_return PassReply{};
}

}  // namespace cairn::kv::chain
