// SPDX-License-Identifier: Apache-2.0
// Damaged records: found when they are read or changed, fetched from another replica of the chain,
// and written anew.
//
// Who is behind in a chain has nothing that this node has not; who is before it may have what is
// not published yet. So what comes is stored as if it was passed on: dirty, until those behind have
// said that they have it.
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "kv/chain/replica.h"
#include "task/deadline.h"

namespace cairn::kv::chain {

using ring::MemberId;
using task::Task;

namespace {

std::optional<MemberId> none() { return std::nullopt; }

}  // namespace

Task<Result<std::optional<Record>>> Replica::read_record(Keyspace& store, std::string key) {
  const std::string stored = stored_key(key);
  const Result<std::optional<Entry>> entry = co_await store.get(stored);
  Result<std::optional<Record>> record =
      entry ? record_of(*entry) : Result<std::optional<Record>>(fail(entry.error()));
  if (!record && record.error() == Errc::kCorrupt) record = co_await repair(std::move(key));
  co_return record;
}

Task<Result<void>> Replica::change_record(Keyspace& store, const std::string& key, Change& change) {
  const std::string stored = stored_key(key);
  const std::string_view view = stored;
  Result<void> done = co_await store.transact({&view, 1}, change);
  if (done || done.error() != Errc::kCorrupt) co_return done;
  const Result<std::optional<Record>> repaired = co_await repair(key);
  if (!repaired) co_return fail(repaired.error());
  done = co_await store.transact({&view, 1}, change);
  co_return done;
}

Task<Result<std::optional<Record>>> Replica::repair(std::string key) {
  const Result<void> mine = co_await repairs_.take(key, stop_.token());
  Result<std::optional<Record>> record = fail(Errc::kCancelled, "a repair");
  if (mine) record = co_await repair_in_turn(key);
  repairs_.done(key, mine);
  co_return record;
}

Task<Result<std::optional<Record>>> Replica::repair_in_turn(const std::string& key) {
  const std::string stored = stored_key(key);
  const Result<std::optional<Entry>> again = co_await for_chain_.get(stored);
  Result<std::optional<Record>> there =
      again ? record_of(*again) : Result<std::optional<Record>>(fail(again.error()));
  if (there || there.error() != Errc::kCorrupt) co_return there;
  // Where it lies is known, unless the segment of the key is damaged too: then what is good can be
  // told, but not stored.
  const Result<std::optional<Meta>> meta = co_await for_chain_.look(stored);
  if (meta && !*meta) co_return std::optional<Record>();
  MemberId from = self_;
  std::optional<Record> good;
  const std::shared_ptr<Mark> mark = marks_.find(key);
  if (mark && mark->stored != 0 && mark->record.version == mark->stored) good = mark->record;
  if (!good) good = co_await fetch_good(key, !meta.has_value(), from);
  Result<void> written = good ? Result<void>() : fail(there.error());
  if (good) written = meta ? co_await rewrite(key, *good, (*meta)->version) : fail(meta.error());
  const bool is_moved = !written && written.error() == Errc::kReset;
  if (!is_moved) ++(written ? stats_.repaired : stats_.unrepaired);
  if (!is_moved && on_damaged_) on_damaged_(key, written ? from : none());
  if (good && (written || !meta)) co_return good;
  co_return fail(written ? there.error() : written.error());
}

// Those behind first: what they have is published.
Task<std::optional<Record>> Replica::fetch_good(const std::string& key, bool only_published,
                                                MemberId& from) {
  struct Source {
    MemberId member;
    std::string address;
  };
  const std::optional<Spot> here = spot(ring::hash_of(key));
  if (!here) co_return std::nullopt;
  const std::vector<ring::Replica>& chain = view_->range_of(ring::hash_of(key)).chain;
  std::vector<Source> sources;
  const auto add = [&](size_t at) {
    if (chain[at].state == ring::Replica::State::kJoining) return;
    sources.push_back({chain[at].member, view_->member(chain[at].member)->address});
  };
  for (size_t at = here->position + 1; at < chain.size(); ++at) add(at);
  for (size_t at = here->position; at > 0; --at) add(at - 1);
  const std::string body =
      encode(FetchRequest{.key = key, .epoch = here->epoch, .only_published = only_published});
  for (const Source& source : sources) {
    const Result<std::string> told = co_await peers_.call(source.address, Call::kFetch, 0, body,
                                                          options_.pass_timeout, stop_.token());
    if (!told) continue;
    Result<FetchReply> reply = decode_fetch_reply(as_bytes(*told));
    if (!reply || reply->status != Status::kDone || !reply->record) continue;
    from = source.member;
    co_return std::move(reply->record);
  }
  co_return std::nullopt;
}

// Puts a good record over the damaged one, if nobody has put another there.
class Replica::RepairChange final : public Change {
 public:
  RepairChange(Replica& replica, const std::string& key, const Record& record,
               uint64_t damaged_version)
      : Change(Needs::kMeta),
        replica_(replica),
        key_(key),
        record_(record),
        damaged_version_(damaged_version) {}

  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    const bool is_same = now[0] && now[0]->meta.version == damaged_version_;
    if (!is_same || !replica_.spot(ring::hash_of(key_))) {
      return fail(Errc::kReset, "the key changed while it was repaired");
    }
    replica_.marks_.begin(key_, 0, record_.version);
    replica_.note_end(record_);
    edits[0] = {.kind = Edit::Kind::kPut, .value = encode_record(record_), .expires = {}};
    return {};
  }

 private:
  Replica& replica_;
  const std::string& key_;
  const Record& record_;
  const uint64_t damaged_version_;
};

Task<Result<void>> Replica::rewrite(const std::string& key, const Record& record,
                                    uint64_t damaged_version) {
  const std::string stored = stored_key(key);
  const std::string_view view = stored;
  RepairChange change(*this, key, record, damaged_version);
  const Result<void> done = co_await for_chain_.transact({&view, 1}, change);
  if (done) note_stored(key, record);
  if (!done && done.error() == Errc::kNoSpace) marks_.give_up(key, record.version);
  co_return done;
}

Task<FetchReply> Replica::fetch(FetchRequest request) {
  const auto may_tell = [&] {
    const std::optional<Spot> here = spot(request.key, request.epoch);
    return here && here->state != ring::Replica::State::kJoining;
  };
  if (!may_tell()) co_return FetchReply{.status = Status::kOtherView};
  // Not repaired here: two that are damaged would wait for each other.
  const std::string stored = stored_key(request.key);
  const Result<std::optional<Entry>> entry = co_await for_chain_.get(stored);
  Result<std::optional<Record>> record =
      entry ? record_of(*entry) : Result<std::optional<Record>>(fail(entry.error()));
  if (!record) co_return FetchReply{.status = Status::kFailed};
  if (!may_tell()) co_return FetchReply{.status = Status::kOtherView};
  const uint64_t version = *record ? (*record)->version : 0;
  if (request.only_published && !marks_.is_published(request.key, version)) {
    co_return FetchReply{.status = Status::kNotReady};
  }
  co_return FetchReply{.record = std::move(*record)};
}

}  // namespace cairn::kv::chain
