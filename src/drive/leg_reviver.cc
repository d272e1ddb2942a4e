// SPDX-License-Identifier: Apache-2.0
#include "drive/leg_reviver.h"

#include <algorithm>

#include "task/deadline.h"

namespace cairn::drive {

LegReviver::LegReviver(env::Env& env, Owner& owner, Legs& legs, Duration retry,
                       task::CancelToken closing, task::Gate& gate)
    : env_(env), owner_(owner), legs_(legs), retry_(retry), closing_(closing), gate_(gate) {}

bool LegReviver::has_work() const {
  return std::ranges::any_of(legs_, [this](const Leg& leg) {
    return leg.state == Leg::State::kLost && (leg.drive != nullptr || !legs_.spares.empty());
  });
}

void LegReviver::wake() {
  if (runs_ || closing_.requested() || !has_work()) return;
  runs_ = true;
  gate_.spawn(run());
}

task::Task<void> LegReviver::run() {
  while (has_work()) {
    const Result<void> slept = co_await task::sleep_for(env_, retry_, closing_);
    if (!slept) break;
    for (size_t leg = 0; leg < legs_.size() && !closing_.requested(); ++leg) {
      if (legs_[leg].state != Leg::State::kLost) continue;
      bool is_back = false;
      if (legs_[leg].drive != nullptr) is_back = co_await owner_.revive(leg);
      if (!is_back && !legs_.spares.empty() && !closing_.requested()) {
        co_await owner_.replace(leg);
      }
    }
  }
  runs_ = false;
}

}  // namespace cairn::drive
