// SPDX-License-Identifier: Apache-2.0
#include "volume/lease.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "task/deadline.h"
#include "task/either.h"

namespace cairn::volume {

namespace {

constexpr Duration kCallLimit = 2_s;
Time end_after(Time sent, Duration lease) { return sent + lease / 10 * 9; }

}  // namespace

Lease::Lease(env::Env& env, ArbiterLink& link, Session session, Duration lease, Time sent,
             OnRenewed on_renewed)
    : env_(env),
      link_(link),
      session_(session),
      length_(lease),
      end_(end_after(sent, lease)),
      answered_(env.now()),
      on_renewed_(std::move(on_renewed)) {
  gate_.spawn(keep());
}

Lease::~Lease() { CHECK(gate_.is_closed(), "a lease is closed before it is destroyed"); }

task::Task<void> Lease::keep() {
  while (!stop_.requested() && !lost_.requested()) {
    {
      task::Deadline next(env_, std::min(env_.now() + length_ / 6, end_), stop_.token());
      [[maybe_unused]] const Result<void> hurried = co_await hurry_.wait(next.token());
      hurry_.reset();
    }
    if (stop_.requested()) break;
    const bool is_held = co_await renew();
    if (!is_held && !stop_.requested()) lost_.request();
  }
}

task::Task<bool> Lease::renew() {
  while (env_.now() < end_ && !stop_.requested() && !lost_.requested()) {
    const Time sent = env_.now();
    const uint64_t number = ++asked_;
    task::Deadline deadline(env_, std::min(sent + kCallLimit, end_), stop_.token());
    const Result<Renewed> renewed = co_await link_.renew(session_, deadline.token());
    if (renewed) {
      answered_ = env_.now();
      length_ = renewed->lease;
      end_ = std::max(end_, end_after(sent, renewed->lease));
      if (env_.now() >= end_) co_return false;
      on_renewed_(*renewed);
      confirmed_ = number;
      moved_.set();
      moved_.reset();
      co_return true;
    }
    if (renewed.error() == Errc::kDenied || renewed.error() == Errc::kNotFound) co_return false;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, std::min(length_ / 40, 1_s), stop_.token());
  }
  co_return env_.now() < end_;
}

task::Task<Result<void>> Lease::confirm(task::CancelToken token) {
  const uint64_t before = asked_;
  hurry();
  task::Either ended(token, lost_.token());
  while (confirmed_ <= before) {
    const Result<void> moved = co_await moved_.wait(ended.token());
    if (lost_.requested()) co_return fail(Errc::kDenied, "the lease of the volume is lost");
    if (!moved) co_return moved;
  }
  co_return Result<void>();
}

task::Task<void> Lease::close() {
  stop_.request();
  co_await gate_.close();
}

}  // namespace cairn::volume
