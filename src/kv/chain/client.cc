// SPDX-License-Identifier: Apache-2.0
#include "kv/chain/client.h"

#include <span>
#include <utility>

#include "kv/engine/engine.h"
#include "kv/ring/view_format.h"
#include "task/deadline.h"

namespace cairn::kv::chain {

using task::CancelToken;
using task::Task;

namespace {

uint64_t draw_id(env::Env& env) {
  uint64_t id = 0;
  while (id == 0) env.fill_secret(std::as_writable_bytes(std::span(&id, 1)));
  return id;
}

uint32_t cost_of(const Command& command) {
  const bool erases =
      command.kind == Command::Kind::kErase || command.kind == Command::Kind::kSwapErase;
  return erases ? engine::kDelTokens : engine::kPutTokens;
}

bool is_key(const std::string& key) { return !key.empty() && key.size() <= kChainKeyMax; }

}  // namespace

Client::Client(env::Env& env, const ClientOptions& options)
    : env_(env),
      options_(options),
      id_(draw_id(env)),
      peers_(env, options.security),
      flow_(env, options.uses_tokens) {}

std::string Client::address_of(ring::MemberId member) const {
  return view_->member(member)->address;
}

bool Client::is_local(ring::MemberId member) const {
  return options_.local != nullptr && options_.local->self() == member;
}

void Client::take_local_view() {
  if (options_.local == nullptr || options_.local->view() == nullptr) return;
  if (!view_ || options_.local->view()->epoch > view_->epoch) {
    view_ = options_.local->shared_view();
  }
}

Task<Result<GetReply>> Client::ask(ring::MemberId member, GetRequest request, CancelToken token) {
  if (is_local(member)) {
    GetReply reply = co_await options_.local->get(std::move(request), token);
    co_return reply;
  }
  const Result<std::string> body = co_await peers_.call(address_of(member), Call::kGet, 0,
                                                        encode(request), options_.attempt, token);
  if (!body) co_return fail(body.error());
  co_return decode_get_reply(as_bytes(*body));
}

Task<Result<WriteReply>> Client::ask(ring::MemberId member, const WriteRequest& request,
                                     CancelToken token) {
  if (is_local(member)) {
    WriteReply reply = co_await options_.local->write(request, token);
    co_return reply;
  }
  const Result<std::string> body = co_await peers_.call(address_of(member), Call::kWrite, 0,
                                                        encode(request), options_.attempt, token);
  if (!body) co_return fail(body.error());
  co_return decode_write_reply(as_bytes(*body));
}

// Asks one node, drawn from those it knows: any may be down, or late.
Task<void> Client::refresh(CancelToken token) {
  std::vector<std::string> known = options_.seeds;
  if (view_) {
    for (const ring::Member& member : view_->members) known.push_back(member.address);
  }
  if (known.empty()) co_return;
  std::string address = known[env_.rng().below(known.size())];
  const Result<std::string> body =
      co_await peers_.call(std::move(address), Call::kView, 0, "", options_.attempt / 4, token);
  if (!body) co_return;
  Result<ring::View> view = ring::decode_view(as_bytes(*body));
  if (view && (!view_ || view->epoch > view_->epoch)) {
    view_ = std::make_shared<const ring::View>(std::move(*view));
  }
}

Task<void> Client::back_off(CancelToken token) {
  [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, options_.retry, token);
  co_await refresh(token);
}

std::vector<ring::MemberId> Client::readers_of(const ring::RingRange& range) const {
  std::vector<ring::MemberId> readers;
  if (options_.reads_at_tail) {
    if (const std::optional<size_t> tail = range.read_tail()) {
      readers.push_back(range.chain[*tail].member);
    }
    return readers;
  }
  for (const ring::Replica& each : range.chain) {
    if (each.state == ring::Replica::State::kRunning) readers.push_back(each.member);
  }
  return readers;
}

// Rather at the node here than at others, if it has tokens.
Task<Result<Flow::Passage>> Client::pass(Flow::Kind kind, uint32_t cost,
                                         std::vector<ring::MemberId> nodes, CancelToken token) {
  Flow::Wanted wanted{.kind = kind, .cost = cost, .nodes = std::move(nodes), .preferred = {}};
  for (const ring::MemberId each : wanted.nodes) {
    if (is_local(each)) wanted.preferred = each;
  }
  return flow_.take(std::move(wanted), token);
}

Found Client::found_in(GetReply reply) const {
  const bool is_over = env_.wall_now().ns / 1'000'000 >= reply.expires_ms;
  Found found{.version = reply.version};
  if (!reply.value || is_over) return found;
  found.value = std::move(reply.value);
  found.expires_ms = reply.expires_ms;
  return found;
}

Task<Result<Found>> Client::get(std::string key, CancelToken token) {
  if (!is_key(key)) co_return fail(Errc::kInvalid, "a key is empty or longer than 32768 bytes");
  task::Deadline deadline(env_, env_.now() + options_.timeout, token);
  while (!deadline.token().requested()) {
    take_local_view();
    std::optional<Found> found = co_await try_get(key, deadline.token());
    if (found) co_return std::move(*found);
    co_await back_off(deadline.token());
  }
  co_return fail(deadline.token().error());
}

// None: whoever was asked has no answer.
Task<std::optional<Found>> Client::try_get(const std::string& key, CancelToken token) {
  if (!view_) co_return std::nullopt;
  std::vector<ring::MemberId> readers = readers_of(view_->range_of(ring::hash_of(key)));
  if (readers.empty()) co_return std::nullopt;
  Result<Flow::Passage> passage =
      co_await pass(Flow::Kind::kRead, engine::kGetTokens, std::move(readers), token);
  if (!passage) co_return std::nullopt;
  // The chain may be another one since this began to wait.
  const ring::RingRange& range = view_->range_of(ring::hash_of(key));
  if (!range.position(passage->member())) co_return std::nullopt;
  GetRequest request{
      .key = key, .epoch = range.epoch, .sender = {.client = id_, .tenant = options_.tenant}};
  Result<GetReply> reply = co_await ask(passage->member(), std::move(request), token);
  if (!reply || reply->status != Status::kDone) co_return std::nullopt;
  passage->answered(reply->tokens);
  co_return found_in(std::move(*reply));
}

Task<Result<Outcome>> Client::write(std::string key, Command command, CancelToken token) {
  if (!is_key(key)) co_return fail(Errc::kInvalid, "a key is empty or longer than 32768 bytes");
  if (command.value.size() > kChainValueMax) {
    co_return fail(Errc::kInvalid, "a value is longer than 1048576 bytes");
  }
  const Result<void> mine = co_await turns_.take(key, token);
  Result<Outcome> result = mine ? Outcome{} : Result<Outcome>(fail(mine.error()));
  if (mine) result = co_await write_in_turn(key, std::move(command), token);
  turns_.done(key, mine);
  co_return result;
}

Task<Result<Outcome>> Client::write_in_turn(std::string key, Command command, CancelToken token) {
  task::Deadline deadline(env_, env_.now() + options_.timeout, token);
  WriteRequest request{.key = std::move(key),
                       .epoch = {},
                       .id = {.client = id_, .number = ++last_number_},
                       .command = std::move(command),
                       .tenant = options_.tenant};
  bool was_sent = false;
  while (!deadline.token().requested()) {
    const Attempted attempted = co_await try_write(request, deadline.token());
    const WriteReply& reply = attempted.reply;
    if (reply.status == Status::kDone) co_return reply.outcome;
    if (reply.status == Status::kNoSpace && !was_sent) {
      co_return fail(Errc::kNoSpace, "the store of a key's head is full");
    }
    if (reply.status == Status::kDoubtful) {
      // If nobody can have carried it out yet, it becomes a new request.
      if (was_sent) co_return fail(Errc::kTimedOut, "a write may have been forgotten");
      request.id.number = ++last_number_;
      request.since = reply.now;
      continue;
    }
    if (reply.status == Status::kOutdated) co_return fail(Errc::kTimedOut, "a write came late");
    was_sent = was_sent || attempted.was_sent;
    co_await back_off(deadline.token());
  }
  co_return fail(deadline.token().error());
}

Task<Client::Attempted> Client::try_write(WriteRequest& request, CancelToken token) {
  take_local_view();
  if (!view_) co_return Attempted{.reply = {.status = Status::kOtherView}};
  const uint64_t hash = ring::hash_of(request.key);
  Result<Flow::Passage> passage =
      co_await pass(Flow::Kind::kWrite, cost_of(request.command),
                    {view_->range_of(hash).chain.front().member}, token);
  if (!passage) co_return Attempted{.reply = {.status = Status::kFailed}};
  // The chain may be another one since this began to wait.
  const ring::RingRange& range = view_->range_of(hash);
  if (range.chain.front().member != passage->member()) {
    co_return Attempted{.reply = {.status = Status::kOtherView}};
  }
  request.epoch = range.epoch;
  const Result<WriteReply> reply = co_await ask(passage->member(), request, token);
  const bool is_done = reply && reply->status != Status::kOtherView &&
                       reply->status != Status::kNotReady && reply->status != Status::kFailed;
  if (is_done) passage->answered(reply->tokens);
  if (reply) co_return Attempted{.was_sent = true, .reply = *reply};
  co_return Attempted{.was_sent = true, .reply = {.status = Status::kFailed}};
}

}  // namespace cairn::kv::chain
