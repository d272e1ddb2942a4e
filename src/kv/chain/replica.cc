// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/replica.h"

#include <algorithm>
#include <span>

#include "task/deadline.h"
#include "task/either.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

namespace {

// Grows from one write of a head to the next, and from one head to the next. There is room for
// 2^24 views and 2^40 writes of a process.
constexpr int kCountBits = 40;
uint64_t version_of(ring::Epoch epoch, uint64_t count) {
  return epoch.value() << kCountBits | count;
}

// A tenant has engine::kWeightUnit times its weight.
constexpr uint32_t kChainWeight = 8 * engine::kWeightUnit;
constexpr uint32_t kUpkeepWeight = engine::kWeightUnit / 4;

}  // namespace

std::string stored_key(std::string_view key) { return "k" + std::string(key); }

std::optional<std::string> user_key(const std::string& stored) {
  if (!stored.starts_with('k')) return std::nullopt;
  return stored.substr(1);
}

Result<std::optional<Record>> Replica::record_of(const std::optional<Entry>& entry) {
  if (!entry) return std::optional<Record>();
  Result<Record> record = decode_record(as_bytes(entry->value));
  if (!record) return fail(record.error());
  return std::optional<Record>(std::move(*record));
}

Replica::Replica(env::Env& env, Keyspace& store, Peers& peers, ring::MemberId self,
                 const ReplicaOptions& options)
    : env_(env),
      shares_(env, store, options.shares),
      for_chain_(shares_.own(kChainWeight)),
      for_upkeep_(shares_.own(kUpkeepWeight)),
      peers_(peers),
      self_(self),
      options_(options),
      changes_(kChangesMax) {
  gate_.spawn(clean());
  gate_.spawn(fill_others());
  gate_.spawn(erase_ended());
}

Task<void> Replica::close() {
  stop_.request();
  co_await gate_.close();
}

bool Replica::may_act() const { return view_ && may_serve_ && may_serve_(); }

std::optional<Replica::Spot> Replica::spot(uint64_t hash) const {
  if (!view_) return std::nullopt;
  const ring::Member* self = view_->member(self_);
  if (self == nullptr || self->incarnation != incarnation_) return std::nullopt;
  const ring::RingRange& range = view_->range_of(hash);
  const std::optional<size_t> position = range.position(self_);
  if (!position) return std::nullopt;
  const size_t read_tail = range.read_tail().value_or(0);
  Spot spot{.epoch = range.epoch,
            .position = *position,
            .state = range.chain[*position].state,
            .is_last = *position + 1 == range.chain.size() ||
                       (range.chain[*position + 1].state == ring::Replica::State::kJoining &&
                        !ready_.contains({range.end, range.epoch})),
            .is_read_tail = *position == read_tail,
            .next = {},
            .read_tail = {},
            .range_end = range.end};
  if (*position + 1 < range.chain.size())
    spot.next = view_->member(range.chain[*position + 1].member)->address;
  spot.read_tail = view_->member(range.chain[read_tail].member)->address;
  return spot;
}

bool Replica::is_of_chain(uint64_t hash) const {
  const ring::Member* self = view_ ? view_->member(self_) : nullptr;
  return self != nullptr && ring::is_same_process(self->incarnation, incarnation_) &&
         view_->range_of(hash).position(self_).has_value();
}

std::optional<Replica::Spot> Replica::spot(std::string_view key, ring::Epoch epoch) const {
  std::optional<Spot> found = spot(ring::hash_of(key));
  if (!found || found->epoch != epoch || !may_act()) return std::nullopt;
  return found;
}

void Replica::set_view(std::shared_ptr<const ring::View> view, ring::Incarnation mine) {
  view_ = std::move(view);
  incarnation_ = mine;
  std::vector<std::string> dropped;
  for (const auto& [key, mark] : marks_.all()) {
    if (!is_of_chain(ring::hash_of(key))) dropped.push_back(key);
  }
  for (const std::string& key : dropped) marks_.drop(key);
  for (const auto& [key, mark] : marks_.all()) mark->moved.set();
  view_moved_.set();
  view_moved_.reset();
}

Status Replica::status_of(const Error& error) {
  switch (error.code()) {
    case Errc::kReset:
      return Status::kOtherView;
    case Errc::kNoSpace:
      return Status::kNoSpace;
    default:
      return Status::kFailed;
  }
}

Task<GetReply> Replica::get(GetRequest request, CancelToken token) {
  const Sender sender = request.sender;
  const engine::Shares::Caller caller{.tenant = sender.tenant, .id = sender.client};
  Keyspace& store = shares_.hear(caller);
  GetReply reply = co_await get_through(store, std::move(request), token);
  reply.tokens = shares_.tokens_for(caller);
  co_return reply;
}

Task<GetReply> Replica::get_through(Keyspace& store, GetRequest request, CancelToken token) {
  constexpr GetReply kOtherView{.status = Status::kOtherView, .version = 0, .value = {}};
  const std::optional<Spot> before = spot(request.key, request.epoch);
  if (!before || before->state != ring::Replica::State::kRunning) co_return kOtherView;
  if (request.is_shipped && !before->is_read_tail) co_return kOtherView;
  ++stats_.gets;
  Result<std::optional<Record>> record = co_await read_record(store, request.key);
  if (!record) co_return GetReply{.status = status_of(record.error())};
  // What was read was there while this node was in the chain by right, if it still is.
  const std::optional<Spot> now = spot(request.key, request.epoch);
  if (!now || now->state != ring::Replica::State::kRunning) co_return kOtherView;
  const uint64_t version = *record ? (*record)->version : 0;
  if (!marks_.is_published(request.key, version)) {
    if (!now->is_read_tail) {
      ++stats_.shipped;
      request.is_shipped = true;
      const Result<std::string> reply = co_await peers_.call(
          now->read_tail, Call::kGet, 1, encode(request), options_.serve_timeout, token);
      if (!reply) co_return kOtherView;
      Result<GetReply> got = decode_get_reply(as_bytes(*reply));
      if (!got) co_return kOtherView;
      co_return std::move(*got);
    }
    // Those behind answer no reads, but have to have it before anybody sees it.
    const Result<void> waited = co_await published(request.key, version, request.epoch, token);
    if (!waited) co_return GetReply{.status = status_of(waited.error())};
  }
  GetReply reply{.version = version};
  if (*record && !(*record)->is_erased) {
    reply.expires_ms = (*record)->expires_ms;
    reply.value = std::move((*record)->value);
  }
  co_return reply;
}

// The head decides, by what it has in its store.
class Replica::HeadChange final : public Change {
 public:
  HeadChange(Replica& replica, const WriteRequest& request)
      : Change(Needs::kValues), replica_(replica), request_(request) {}

  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    const std::optional<Spot> spot = replica_.spot(request_.key, request_.epoch);
    if (!spot || spot->position != 0) return fail(Errc::kReset, "the chain changed");
    Result<std::optional<Record>> record = record_of(now[0]);
    if (!record) return fail(record.error());
    if (*record) seen = (*record)->version;
    const uint64_t version = version_of(spot->epoch, replica_.writes_decided_ + 1);
    decision = chain::decide(*record, request_.command, request_.id, request_.since, version,
                             replica_.now_ms());
    if (decision.kind != Decision::Kind::kChanged) return {};
    ++replica_.writes_decided_;
    replica_.marks_.begin(request_.key, *record ? (*record)->version : 0, version);
    begun = version;
    replica_.note_end(decision.record);
    edits[0] = {.kind = Edit::Kind::kPut, .value = encode_record(decision.record), .expires = {}};
    seen = version;
    return {};
  }

  Decision decision;
  uint64_t seen = 0;   // the version that the decision stands on, or has made
  uint64_t begun = 0;  // that it makes

 private:
  Replica& replica_;
  const WriteRequest& request_;
};

Task<WriteReply> Replica::write(WriteRequest request, CancelToken token) {
  const std::string tenant = request.tenant;
  const engine::Shares::Caller caller{.tenant = tenant, .id = request.id.client};
  Keyspace& store = shares_.hear(caller);
  WriteReply reply = co_await write_through(store, std::move(request), token);
  reply.tokens = shares_.tokens_for(caller);
  co_return reply;
}

Task<WriteReply> Replica::write_through(Keyspace& store, WriteRequest request, CancelToken token) {
  const std::optional<Spot> before = spot(request.key, request.epoch);
  if (!before || before->position != 0 || before->state == ring::Replica::State::kJoining) {
    co_return WriteReply{.status = Status::kOtherView};
  }
  const Result<void> place = co_await changes_.acquire(1, token);
  if (!place) co_return WriteReply{.status = Status::kFailed};
  task::Units held(changes_, 1);
  HeadChange change(*this, request);
  const Result<void> done = co_await change_record(store, request.key, change);
  held.release();
  if (!done) {
    if (done.error() == Errc::kNoSpace) marks_.give_up(request.key, change.begun);
    co_return WriteReply{.status = status_of(done.error())};
  }
  ++stats_.writes;
  switch (change.decision.kind) {
    case Decision::Kind::kOutdated:
      co_return WriteReply{.status = Status::kOutdated};
    case Decision::Kind::kDoubtful:
      co_return WriteReply{.status = Status::kDoubtful,
                           .now = version_of(request.epoch, writes_decided_)};
    case Decision::Kind::kChanged:
      note_stored(request.key, std::move(change.decision.record));
      break;
    case Decision::Kind::kUnchanged:
    case Decision::Kind::kRepeated:
      break;
  }
  // Nobody is told of what is not everywhere yet, nor of what follows from it.
  const Result<void> waited = co_await published(request.key, change.seen, request.epoch, token);
  if (!waited) co_return WriteReply{.status = status_of(waited.error())};
  co_return WriteReply{.outcome = change.decision.outcome};
}

// Puts a record that is newer than what is there.
class Replica::PassChange final : public Change {
 public:
  PassChange(Replica& replica, const std::string& key, ring::Epoch epoch, const Record& record)
      : Change(Needs::kValues), replica_(replica), key_(key), epoch_(epoch), record_(record) {}

  Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
    if (!replica_.spot(key_, epoch_)) return fail(Errc::kReset, "the chain changed");
    const Result<std::optional<Record>> there = record_of(now[0]);
    if (!there) return fail(there.error());
    if (*there && (*there)->version >= record_.version) return {};
    is_newer = true;
    replica_.marks_.begin(key_, *there ? (*there)->version : 0, record_.version);
    replica_.note_end(record_);
    edits[0] = {.kind = Edit::Kind::kPut, .value = encode_record(record_), .expires = {}};
    return {};
  }

  bool is_newer = false;

 private:
  Replica& replica_;
  const std::string& key_;
  const ring::Epoch epoch_;
  const Record& record_;
};

Task<Result<void>> Replica::put_record(Keyspace& store, const std::string& key,
                                       const Record& record, ring::Epoch epoch) {
  const Result<void> place = co_await changes_.acquire(1, stop_.token());
  if (!place) co_return fail(place.error());
  task::Units held(changes_, 1);
  PassChange change(*this, key, epoch, record);
  const Result<void> done = co_await change_record(store, key, change);
  if (!done) {
    if (done.error() == Errc::kNoSpace) marks_.give_up(key, record.version);
    co_return done;
  }
  if (change.is_newer) note_stored(key, record);
  co_return Result<void>{};
}

Task<PassReply> Replica::forward(ForwardRequest request, CancelToken token) {
  const std::optional<Spot> here = spot(request.key, request.epoch);
  if (!here || here->position != request.hop || here->position == 0) {
    co_return PassReply{.status = Status::kOtherView};
  }
  const bool is_joining = here->state == ring::Replica::State::kJoining;
  if (is_joining && !wiped_.contains({here->range_end, here->epoch})) {
    co_return PassReply{.status = Status::kNotReady};
  }
  const Result<void> done =
      co_await put_record(for_chain_, request.key, request.record, request.epoch);
  if (!done) co_return PassReply{.status = status_of(done.error())};
  const Result<void> waited =
      co_await published(request.key, request.record.version, request.epoch, token);
  if (!waited) co_return PassReply{.status = status_of(waited.error())};
  co_return PassReply{};
}

void Replica::note_stored(const std::string& key, Record record) {
  const uint64_t version = record.version;
  if (!is_of_chain(ring::hash_of(key))) return marks_.drop(key);
  const std::shared_ptr<Mark> mark = marks_.take(key);
  if (version > mark->stored) {
    mark->stored = version;
    mark->newest = std::max(mark->newest, version);
    mark->record = std::move(record);
  }
  if (mark->is_passing) return;
  mark->is_passing = true;
  gate_.spawn(pass_on(key, mark));
}

Task<void> Replica::pass_on(std::string key, std::shared_ptr<Mark> mark) {
  while (!mark->is_dropped && !stop_.requested() && mark->published < mark->stored) {
    const std::optional<Spot> here = spot(ring::hash_of(key));
    if (!here) {
      // The view does not know this node's lease yet. One that drops the node drops the mark.
      co_await await_news(options_.pass_retry);
      continue;
    }
    const uint64_t version = mark->stored;
    if (here->is_last) {
      marks_.publish(key, version);
      continue;
    }
    const ForwardRequest request{.key = key,
                                 .epoch = here->epoch,
                                 .hop = static_cast<uint32_t>(here->position + 1),
                                 .record = mark->record};
    const Result<std::string> body =
        co_await peers_.call(here->next, Call::kForward, request.hop, encode(request),
                             options_.pass_timeout, stop_.token());
    const Result<PassReply> reply =
        body ? decode_pass_reply(as_bytes(*body)) : Result<PassReply>(fail(body.error()));
    if (mark->is_dropped) break;
    if (reply && reply->status == Status::kDone) {
      marks_.publish(key, version);
      continue;
    }
    task::Deadline pause(env_, env_.now() + options_.pass_retry, stop_.token());
    [[maybe_unused]] const Result<void> moved = co_await view_moved_.wait(pause.token());
  }
  mark->is_passing = false;
  if (!mark->is_dropped) marks_.settle(key);
}

Task<Result<void>> Replica::published(std::string key, uint64_t version, ring::Epoch epoch,
                                      CancelToken token) {
  task::Deadline deadline(env_, env_.now() + options_.serve_timeout, token);
  while (true) {
    // A chain that changed meanwhile has it or will: who asked has to look again.
    if (!spot(key, epoch)) co_return fail(Errc::kReset, "the chain changed");
    const std::shared_ptr<Mark> mark = marks_.find(key);
    if (!mark || mark->published >= version) co_return Result<void>{};
    mark->moved.reset();
    const Result<void> moved = co_await mark->moved.wait(deadline.token());
    if (!moved) co_return moved;
  }
}

}  // namespace cairn::kv::chain
