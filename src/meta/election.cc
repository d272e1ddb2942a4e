// SPDX-License-Identifier: Apache-2.0
#include "meta/election.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "task/deadline.h"
#include "task/either.h"

namespace cairn::meta {

namespace {

constexpr Duration kPause = 100_ms;

bool may_pass(const Error& error) {
  switch (error.code()) {
    case Errc::kUnreachable:
    case Errc::kTimedOut:
    case Errc::kReset:
    case Errc::kLimit:
    case Errc::kNotFound:  // a lease, or history to watch: taken anew
      return true;
    default:
      return false;
  }
}

}  // namespace

task::Task<Result<std::optional<Revision>>> Election::try_once(LeaseId lease,
                                                               task::CancelToken token) {
  Batch batch;
  batch.if_absent(options_.key).put(options_.key, options_.value, lease);
  const Result<Committed> committed = co_await store_.commit(std::move(batch), token);
  if (committed && committed->done()) co_return committed->revision;
  // Refused, or not known: an earlier attempt may have been carried out after all.
  if (!committed && !may_pass(committed.error())) co_return fail(committed.error());
  const Result<std::optional<Entry>> entry = co_await store_.get(options_.key, token);
  if (!entry) co_return fail(entry.error());
  if (*entry && (*entry)->lease == lease) co_return (*entry)->created;
  co_return std::nullopt;
}

task::Task<Result<void>> Election::wait_for_vacancy(task::CancelToken token) {
  const Result<std::optional<Entry>> entry = co_await store_.get(options_.key, token);
  if (!entry) co_return fail(entry.error());
  if (!*entry) co_return Result<void>{};
  Result<std::unique_ptr<Watch>> watch =
      co_await store_.watch(Range::one(options_.key), next((*entry)->modified), token);
  if (!watch) co_return fail(watch.error());
  Result<void> vacant;
  bool waits = true;
  while (waits && vacant) {
    const Result<std::vector<Change>> changes = co_await (*watch)->next(token);
    if (!changes) {
      vacant = fail(changes.error());
    } else {
      waits = !changes->back().events.back().removed;
    }
  }
  co_await (*watch)->close();
  co_return vacant;
}

task::Task<Result<std::optional<Revision>>> Election::run(HeldLease& lease,
                                                          task::CancelToken token) {
  task::Either both(token, lease.lost_token());
  while (lease.is_held()) {
    const Result<std::optional<Revision>> won = co_await try_once(lease.id(), both.token());
    if (won && *won) co_return won;
    Result<void> step = won ? Result<void>{} : fail(won.error());
    if (step) step = co_await wait_for_vacancy(both.token());
    if (token.requested()) co_return fail(token.error());
    if (step) continue;
    if (!may_pass(step.error())) co_return fail(step.error());
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, kPause, both.token());
  }
  co_return std::nullopt;
}

task::Task<Result<std::unique_ptr<Leadership>>> Election::campaign(task::CancelToken token) {
  while (true) {
    if (token.requested()) co_return fail(token.error());
    Result<std::unique_ptr<HeldLease>> lease =
        co_await HeldLease::take(env_, store_, options_.ttl, token);
    if (!lease) {
      if (token.requested() || !may_pass(lease.error())) co_return fail(lease.error());
      [[maybe_unused]] const Result<void> slept = co_await task::sleep_for(env_, kPause, token);
      continue;
    }
    // A store that was away gave the lost lease its full time again, and it could not be given back
    // then.
    if (const LeaseId former = std::exchange(former_, (*lease)->id()); former != LeaseId()) {
      [[maybe_unused]] const Result<void> revoked = co_await store_.revoke(former, token);
    }
    const Result<std::optional<Revision>> won = co_await run(**lease, token);
    if (won && *won && (*lease)->is_held()) {
      co_return std::make_unique<Leadership>(std::move(*lease), options_.key, **won);
    }
    co_await (*lease)->close();
    if (!won) co_return fail(won.error());
  }
}

}  // namespace cairn::meta
