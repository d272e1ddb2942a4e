// SPDX-License-Identifier: Apache-2.0
#include "meta/held_lease.h"

#include <algorithm>

#include "base/check.h"
#include "task/deadline.h"

namespace cairn::meta {

task::Task<Result<std::unique_ptr<HeldLease>>> HeldLease::take(env::Env& env, Store& store,
                                                               Duration ttl,
                                                               task::CancelToken token) {
  const Time sent = env.now();
  const Result<Lease> lease = co_await store.grant(ttl, token);
  if (!lease) co_return fail(lease.error());
  co_return std::make_unique<HeldLease>(env, store, *lease, sent);
}

HeldLease::HeldLease(env::Env& env, Store& store, Lease lease, Time sent)
    : env_(env), store_(store), lease_(lease), end_(end_after(sent, lease.ttl)) {
  gate_.spawn(keep_alive());
}

HeldLease::~HeldLease() { CHECK(gate_.is_closed(), "a lease is closed before it is destroyed"); }

task::Task<void> HeldLease::keep_alive() {
  bool held = true;
  while (held && !stop_.requested()) {
    const Time when = std::min(env_.now() + lease_.ttl / 3, end_);
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_until(env_, when, stop_.token());
    if (!stop_.requested()) held = co_await renew();
  }
  if (!stop_.requested()) lost_.request(Errc::kTimedOut);
}

task::Task<bool> HeldLease::renew() {
  while (env_.now() < end_ && !stop_.requested()) {
    const Time sent = env_.now();
    task::Deadline deadline(env_, end_, stop_.token());
    const Result<Duration> ttl = co_await store_.keep_alive(lease_.id, deadline.token());
    if (ttl) {
      end_ = std::max(end_, end_after(sent, *ttl));
      co_return env_.now() < end_;
    }
    if (ttl.error() == Errc::kNotFound) co_return false;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, lease_.ttl / 20, deadline.token());
  }
  co_return false;
}

task::Task<void> HeldLease::abandon() {
  stop_.request();
  co_await gate_.close();
}

task::Task<void> HeldLease::close() {
  co_await abandon();
  // Until it ends by itself anyway.
  task::Deadline deadline(env_, std::max(end_, env_.now() + 1_ms));
  [[maybe_unused]] const Result<void> revoked = co_await store_.revoke(lease_.id, deadline.token());
}

}  // namespace cairn::meta
