// SPDX-License-Identifier: Apache-2.0
// LegsClaim: whether the legs of a redundant service still belong to the opening that has them, as
// Claim (claim.h) says of one drive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/units.h"
#include "drive/join.h"
#include "env/env.h"
#include "service/raid/legs.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::drive {

class LegsClaim {
 public:
  // The label of a leg, if it is one of this service at all.
  struct Seen {
    bool is_others = false;  // another opening wrote it
    uint64_t generation = 0;
  };
  class Owner {
   public:
    virtual task::Task<Result<Seen>> look_at_label(size_t leg, task::CancelToken token) = 0;
    // It does not answer: whoever writes next would wait as long once more.
    virtual void leg_is_silent(size_t leg) = 0;

   protected:
    ~Owner() = default;
  };
  // All outlive it; `gate` is closed before any of them goes.
  LegsClaim(env::Env& env, Owner& owner, Legs& legs, task::Gate& gate)
      : env_(env), owner_(owner), legs_(legs), gate_(gate) {}

  // A label of this opening is on the legs, the first of them with this generation.
  void claimed(uint64_t generation) {
    if (first_ == 0) first_ = generation;
  }
  // Whether check() comes before data is written.
  bool is_due() const { return is_lost_ || env_.now() >= good_until_; }
  // Looks at all legs that are written. `newest` is the generation of the label that the service
  // has: before it wrote one, that which it read. kDenied: they belong to another opening, now and
  // for good; else an error of the token. A leg that fails is no other's.
  task::Task<Result<void>> check(uint64_t newest, task::CancelToken token = {});

 private:
  task::Task<void> check_leg(size_t leg, uint64_t from, task::CancelToken token, Join& join);

  env::Env& env_;
  Owner& owner_;
  Legs& legs_;
  task::Gate& gate_;
  uint64_t first_ = 0;  // 0: none yet
  bool is_lost_ = false;
  Time good_until_;
};

}  // namespace cairn::drive
