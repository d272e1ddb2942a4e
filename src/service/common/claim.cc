// SPDX-License-Identifier: Apache-2.0
#include "service/common/claim.h"

namespace cairn::drive {

task::Task<Result<void>> Claim::check(task::CancelToken token) {
  if (is_lost_) co_return fail(taken_over());
  if (label_.writer == 0) co_return Result<void>();
  const Time asked = env_.now();
  const Result<bool> is_mine = co_await has_writer(env_, drive_, label_, token);
  if (!is_mine) co_return fail(is_mine.error());
  is_lost_ = !*is_mine;
  if (is_lost_) co_return fail(taken_over());
  good_until_ = asked + kClaimLasts;
  co_return Result<void>();
}

}  // namespace cairn::drive
