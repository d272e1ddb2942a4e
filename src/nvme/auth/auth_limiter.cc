// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth/auth_limiter.h"

#include <algorithm>

namespace cairn::nvme {

Duration AuthLimiter::pause_of(const Entry& entry) {
  Duration pause = kPauseMin;
  for (uint32_t i = 1; i < entry.failures && pause < kPauseMax; ++i) pause = pause * 2;
  return std::min(pause, kPauseMax);
}

Result<Time> AuthLimiter::take_turn(const Who& who, Time now, Duration wait_max) {
  const auto found = entries_.find(key_of(who));
  if (found == entries_.end()) return now;
  Entry& entry = found->second;
  if (now - entry.last > kMemory) {
    entries_.erase(found);
    return now;
  }
  const Time turn = std::max(now, entry.next);
  if (turn - now > wait_max) return fail(Errc::kLimit, "too many attempts in this name");
  entry.next = turn + pause_of(entry);
  return turn;
}

void AuthLimiter::failed(const Who& who, Time now) {
  const Key key = key_of(who);
  if (entries_.size() >= kEntriesMax && !entries_.contains(key)) {
    entries_.erase(std::ranges::min_element(entries_, {},
                                            [](const auto& each) { return each.second.last.ns; }));
  }
  Entry& entry = entries_[key];
  ++entry.failures;
  entry.last = now;
  entry.next = std::max(entry.next, now + pause_of(entry));
}

void AuthLimiter::succeeded(const Who& who) { entries_.erase(key_of(who)); }

}  // namespace cairn::nvme
