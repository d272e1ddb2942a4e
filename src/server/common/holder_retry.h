// SPDX-License-Identifier: Apache-2.0
// HolderRetry: what a process held that was killed a moment ago (a port, a lock, a socket), the
// kernel may hold a little longer, until it has ended its requests.
#pragma once

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::server {

// A loaded machine takes its time; whoever meets a living process waits as long for the refusal.
inline constexpr Duration kHolderTimeout = 2_s;

//   HolderRetry retry(env);
//   for (bool again = true; again;) {
//     done = try_it();
//     again = co_await retry.after(done);
//   }
class HolderRetry {
 public:
  explicit HolderRetry(env::Env& env) : env_(env), until_(env.now() + kHolderTimeout) {}

  // True, after a short while, when `result` is kExists and there is time for another try.
  template <class T>
  task::Task<bool> after(const Result<T>& result) {
    if (result || result.error() != Errc::kExists || env_.now() >= until_) co_return false;
    const Result<void> slept = co_await task::sleep_for(env_, 20_ms, env_.stop_token());
    co_return slept.has_value();
  }

 private:
  env::Env& env_;
  Time until_;
};

}  // namespace cairn::server
