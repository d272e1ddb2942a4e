// SPDX-License-Identifier: Apache-2.0
#include "snis/convergence.h"

#include <cmath>

namespace cairn::snis {

std::string_view text(Stable stable) {
  switch (stable) {
    case Stable::kBelowSigma:
      return "below sigma";
    case Stable::kWithinTau:
      return "within tau";
    case Stable::kNo:
      break;
  }
  return "not stable";
}

Stable Convergence::add(double criterion) {
  ++iteration_;
  const bool within = last_ && std::abs(criterion - *last_) <= rules_.tau;
  within_ = within ? within_ + 1 : 0;
  last_ = criterion;
  Stable stable = Stable::kNo;
  if (criterion < rules_.sigma) {
    stable = Stable::kBelowSigma;
  } else if (within_ >= rules_.in_a_row) {
    stable = Stable::kWithinTau;
  }
  if (stable != Stable::kNo && !at_) {
    at_ = iteration_;
    why_ = stable;
  }
  return stable;
}

}  // namespace cairn::snis
