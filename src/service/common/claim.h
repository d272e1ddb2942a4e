// SPDX-License-Identifier: Apache-2.0
// Claim: whether a drive still belongs to the service that opened it.
//
// Two processes that open one medium, over a network for instance, would destroy each other's maps.
// So every opening puts a writer of its own into the label (claim_label() in label.h), and looks
// before it writes journals, labels and bitmaps, and now and then before it writes data, whether
// that is still there. A write that is under way when another opening claims the drive is not
// undone.
#pragma once

#include "base/error.h"
#include "base/units.h"
#include "drive/drive.h"
#include "env/env.h"
#include "service/common/label.h"
#include "task/task.h"

namespace cairn::drive {

// How long data is written without another look.
inline constexpr Duration kClaimLasts = 100_ms;

class Claim {
 public:
  // `label` is the one that the service has written to the drive; one without a writer is not
  // claimed yet, and nobody can take it. All outlive it.
  Claim(env::Env& env, Drive& drive, const Label& label)
      : env_(env), drive_(drive), label_(label) {}

  // Whether check() comes before data is written.
  bool is_due() const { return is_lost_ || env_.now() >= good_until_; }
  // Looks. kDenied: the drive belongs to another opening, now and for good; else an error of the
  // drive or the token.
  task::Task<Result<void>> check(task::CancelToken token = {});

 private:
  env::Env& env_;
  Drive& drive_;
  const Label& label_;
  Time good_until_;
  bool is_lost_ = false;
};

}  // namespace cairn::drive
