// SPDX-License-Identifier: Apache-2.0
#include "nvme/auth_limiter.h"

#include <algorithm>

namespace cairn::nvme {

AuthLimiter::Key AuthLimiter::key_of(const env::Address& address) {
  Key key{};
  key[0] = static_cast<uint8_t>(address.family);
  const size_t size = address.family == env::Address::Family::kIp4   ? 4
                      : address.family == env::Address::Family::kIp6 ? 8
                                                                     : 0;
  std::copy_n(address.ip.begin(), size, key.begin() + 1);
  return key;
}

Duration AuthLimiter::pause_of(const Entry& entry) {
  Duration pause = kPauseMin;
  for (uint32_t i = 1; i < entry.failures && pause < kPauseMax; ++i) pause = pause * 2;
  return std::min(pause, kPauseMax);
}

Result<Time> AuthLimiter::take_turn(const env::Address& from, Time now) {
  const auto found = entries_.find(key_of(from));
  if (found == entries_.end()) return now;
  Entry& entry = found->second;
  if (now - entry.last > kMemory) {
    entries_.erase(found);
    return now;
  }
  const Time turn = std::max(now, entry.next);
  if (turn - now > kWaitMax) return fail(Errc::kLimit, "too many attempts from this address");
  entry.next = turn + pause_of(entry);
  return turn;
}

void AuthLimiter::failed(const env::Address& from, Time now) {
  const Key key = key_of(from);
  if (entries_.size() >= kAddressesMax && !entries_.contains(key)) {
    entries_.erase(std::ranges::min_element(entries_, {},
                                            [](const auto& each) { return each.second.last.ns; }));
  }
  Entry& entry = entries_[key];
  ++entry.failures;
  entry.last = now;
  entry.next = std::max(entry.next, now + pause_of(entry));
}

void AuthLimiter::succeeded(const env::Address& from) { entries_.erase(key_of(from)); }

}  // namespace cairn::nvme
