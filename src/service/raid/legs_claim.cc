// SPDX-License-Identifier: Apache-2.0
#include "service/raid/legs_claim.h"

#include "service/common/claim.h"
#include "service/common/label.h"
#include "service/raid/leg.h"

namespace cairn::drive {

task::Task<Result<void>> LegsClaim::check(uint64_t newest, task::CancelToken token) {
  if (is_lost_) co_return fail(taken_over());
  const Time asked = env_.now();
  const uint64_t from = first_ != 0 ? first_ : newest + 1;
  Join join;
  for (size_t leg = 0; leg < legs_.size(); ++leg) {
    if (!legs_.is_written(leg)) continue;
    join.add();
    gate_.spawn(check_leg(leg, from, token, join));
  }
  const Result<void> all = co_await join.all();
  (void)all;  // a leg that fails is no other's
  if (is_lost_) co_return fail(first_ != 0 ? taken_over() : changed_meanwhile());
  if (token.requested()) co_return fail(token.error());
  good_until_ = asked + kClaimLasts;
  co_return Result<void>();
}

// A leg that was away has an older label, of whoever wrote it then. One that cannot be read is
// dropped when it cannot be written.
task::Task<void> LegsClaim::check_leg(size_t leg, uint64_t from, task::CancelToken token,
                                      Join& join) {
  const Result<Seen> seen = co_await owner_.look_at_label(leg, token);
  if (seen) {
    if (seen->is_others && seen->generation >= from) is_lost_ = true;
  } else if (!token.requested() && is_silent(seen.error())) {
    owner_.leg_is_silent(leg);
  }
  join.finish({});
}

}  // namespace cairn::drive
