// SPDX-License-Identifier: Apache-2.0
#include "volume/sweeper.h"

#include <utility>

#include "task/deadline.h"

namespace cairn::volume {

using drive::RegionSet;
using task::Task;

void Sweeper::start() {
  if (runs_ || parts_.closing.requested()) return;
  runs_ = true;
  parts_.gate.spawn(run());
}

Task<void> Sweeper::run() {
  Owner& owner = parts_.owner;
  do {
    const Result<void> slept =
        co_await task::sleep_for(parts_.env, period_, parts_.closing.token());
    if (!slept || !parts_.lease.is_held()) break;
    if (owner.intents() != nullptr) co_await run_once(*owner.intents());
  } while (owner.intents() == nullptr || owner.intents()->marked() > 0);
  runs_ = false;
}

Task<void> Sweeper::run_once(drive::WriteIntent& intents) {
  RegionSet idle = intents.idle();
  for (size_t region = idle.next(0); region < idle.size(); region = idle.next(region + 1)) {
    if (parts_.owner.has_unequal(region)) idle.remove(region);
  }
  if (idle.empty()) co_return;
  const Result<void> flushed = co_await parts_.owner.flush_legs(parts_.closing.token());
  if (!flushed || !parts_.owner.is_reported()) co_return;
  co_await intents.forget(std::move(idle));
}

}  // namespace cairn::volume
