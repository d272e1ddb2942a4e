// SPDX-License-Identifier: Apache-2.0
#include "model/net/tcp.h"

#include <algorithm>
#include <cstdlib>

namespace cairn::net {

namespace {

constexpr uint32_t kDoublingsMax = 6;
constexpr Picos kUnmeasured = 10 * kMillisecond;

}  // namespace

void TcpState::measured(Picos sample) {
  if (round_trip == 0) {
    round_trip = sample;
    round_trip_var = sample / 2;
    return;
  }
  round_trip_var += (std::abs(round_trip - sample) - round_trip_var) / 4;
  round_trip += (sample - round_trip) / 8;
}

Picos TcpState::timeout(Picos min) const {
  const Picos wanted = round_trip == 0 ? kUnmeasured : round_trip + 4 * round_trip_var;
  return std::max(wanted, min) << std::min(timeouts, kDoublingsMax);
}

uint64_t TcpState::arrived(uint64_t expected, uint64_t from, uint64_t to) {
  if (to <= expected) return expected;
  auto first = std::ranges::lower_bound(islands, from, {}, [](const auto& i) { return i.second; });
  auto last = first;
  while (last != islands.end() && last->first <= to) {
    from = std::min(from, last->first);
    to = std::max(to, last->second);
    ++last;
  }
  first = islands.erase(first, last);
  if (from <= expected) return std::max(expected, to);
  islands.insert(first, {from, to});
  return expected;
}

}  // namespace cairn::net
