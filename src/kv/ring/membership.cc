// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/membership.h"

#include <fmt/format.h>

#include <optional>

#include "task/deadline.h"
#include "task/either.h"

namespace cairn::kv::ring {

using meta::Revision;
using task::CancelToken;
using task::Task;

std::string view_key(const std::string& prefix) { return prefix + "view"; }
std::string nodes_prefix(const std::string& prefix) { return prefix + "node/"; }
std::string node_key(const std::string& prefix, MemberId member) {
  return fmt::format("{}node/{:016x}", prefix, member.value());
}

Membership::Membership(env::Env& env, meta::Store& store, Member self, MembershipOptions options,
                       OnView on_view)
    : env_(env),
      store_(store),
      self_(std::move(self)),
      options_(std::move(options)),
      on_view_(std::move(on_view)) {}

void Membership::set_copied(std::vector<std::pair<uint64_t, Epoch>> copied) {
  if (copied == copied_) return;
  copied_ = std::move(copied);
  news_.set();
}

void Membership::set_leaving() {
  self_.state = Member::State::kLeaving;
  news_.set();
}

// Of the same process as the one before, unless that counted as many leases as there are numbers.
Incarnation Membership::next_incarnation() {
  const uint64_t next = self_.incarnation.value() + 1;
  constexpr uint64_t kCounts = uint64_t{1} << kLeaseCountBits;
  if (self_.incarnation != Incarnation() && next % kCounts != 0) return Incarnation(next);
  uint64_t process = 0;
  while (process == 0) process = env_.rng().next() / kCounts * kCounts;
  return Incarnation(process);
}

Task<void> Membership::run(CancelToken token) {
  task::CancelSource stop(token);
  task::Gate gate;
  gate.spawn(follow_view(stop.token()));
  while (!token.requested()) {
    Result<std::unique_ptr<meta::HeldLease>> lease =
        co_await meta::HeldLease::take(env_, store_, options_.lease, token);
    if (lease) {
      lease_ = std::move(*lease);
      self_.incarnation = next_incarnation();
      if (view_) on_view_(view_, self_.incarnation);
      co_await stay(token);
      if (token.requested()) {
        co_await lease_->close();
      } else {
        co_await lease_->abandon();
      }
      lease_ = nullptr;
    }
    if (token.requested()) break;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.retry, token);
  }
  stop.request();
  co_await gate.close();
}

Task<void> Membership::stay(CancelToken token) {
  task::Either both(token, lease_->lost_token());
  std::optional<Revision> last;
  while (!both.token().requested()) {
    news_.reset();
    Result<void> told;
    if (!last) {
      // Whatever an earlier incarnation left, or has still on its way, is not in ours.
      const Result<std::optional<meta::Entry>> found =
          co_await store_.get(node_key(options_.prefix, self_.id), both.token());
      if (found) {
        last = *found ? (*found)->modified : Revision();
      } else {
        told = fail(found.error());
      }
    }
    if (last) told = co_await tell(*last, both.token());
    if (told) {
      [[maybe_unused]] const Result<void> woken = co_await news_.wait(both.token());
    } else {
      last.reset();
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(env_, options_.retry, both.token());
    }
  }
}

Task<Result<void>> Membership::tell(Revision& last, CancelToken token) {
  const std::string key = node_key(options_.prefix, self_.id);
  const NodeRecord record{
      .member = self_, .seen = view_ ? view_->epoch : Epoch(), .copied = copied_};
  meta::Batch batch;
  if (last == Revision()) {
    batch.if_absent(key);
  } else {
    batch.if_modified(key, last);
  }
  batch.put(key, encode(record), lease_->id());
  const Result<meta::Committed> done = co_await store_.commit(std::move(batch), token);
  if (!done) co_return fail(done.error());
  if (!done->done()) co_return fail(Errc::kMismatch, "a node's record was changed");
  last = done->revision;
  co_return Result<void>{};
}

Task<void> Membership::follow_view(CancelToken token) {
  while (!token.requested()) {
    [[maybe_unused]] const Result<void> followed = co_await follow_once(token);
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, options_.retry, token);
  }
}

Task<Result<void>> Membership::follow_once(CancelToken token) {
  const std::string key = view_key(options_.prefix);
  Result<std::unique_ptr<meta::Watch>> watch =
      co_await store_.watch(meta::Range::one(key), Revision(), token);
  if (!watch) co_return fail(watch.error());
  const Result<std::optional<meta::Entry>> now = co_await store_.get(key, token);
  Result<void> result = now ? Result<void>{} : fail(now.error());
  if (now && *now) take_view((*now)->value);
  while (result) {
    const Result<std::vector<meta::Change>> changes = co_await (*watch)->next(token);
    if (!changes) {
      result = fail(changes.error());
      break;
    }
    for (const meta::Change& change : *changes) {
      for (const meta::Event& event : change.events) {
        if (!event.removed) take_view(event.entry.value);
      }
    }
  }
  co_await (*watch)->close();
  co_return result;
}

void Membership::take_view(const std::string& bytes) {
  Result<View> view = decode_view(as_bytes(bytes));
  // What makes no sense changes nothing: the node goes on by what it knows, while its lease lasts.
  if (!view || (view_ && view->epoch <= view_->epoch)) return;
  view_ = std::make_shared<const View>(std::move(*view));
  on_view_(view_, self_.incarnation);
  news_.set();
}

}  // namespace cairn::kv::ring
