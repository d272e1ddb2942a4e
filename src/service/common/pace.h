// SPDX-License-Identifier: Apache-2.0
// Pace: what runs in the background moves so many bytes per second, a tenth of them at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "env/env.h"
#include "service/common/token_bucket.h"
#include "task/deadline.h"
#include "task/task.h"

namespace cairn::drive {

class Pace {
 public:
  // A rate of 0 holds nobody up.
  Pace(env::Env& env, uint64_t bytes_per_second)
      : env_(env),
        bucket_(bytes_per_second, std::max<uint64_t>(bytes_per_second / 10, 1), env.now()) {}

  // Waits until so much may be moved. An error: the token ended the wait, and nothing was taken.
  task::Task<Result<void>> take(uint64_t bytes, task::CancelToken token) {
    const Time when = bucket_.when(bytes, env_.now());
    if (when > env_.now()) {
      const Result<void> slept = co_await task::sleep_until(env_, when, token);
      if (!slept) co_return slept;
    }
    bucket_.take(bytes, env_.now());
    co_return Result<void>();
  }

 private:
  env::Env& env_;
  TokenBucket bucket_;
};

}  // namespace cairn::drive
