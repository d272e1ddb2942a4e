// SPDX-License-Identifier: Apache-2.0
// How a client with several servers behaves when they fail: which errors say something about a
// server, and how long to wait when all have failed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "base/units.h"

namespace cairn::rpc {

// A refusal may come of bytes that were damaged on the way; so many in a row, of each server, do
// not.
inline constexpr size_t kRefusalsMax = 3;

// It answered, but not as such a server does: damage on the way, or it is none.
inline bool is_strange(const Error& error) {
  return error == Errc::kCorrupt || error == Errc::kUnsupported;
}

// It will say the same again.
inline bool is_refusal(const Error& error) {
  return error == Errc::kDenied || error == Errc::kUnsupported;
}

// After the `failures`-th failure in a row, the first is 1: none until all servers have failed once
// more, then one that doubles.
inline Duration failover_pause(size_t failures, size_t servers) {
  constexpr Duration kFirst = 50_ms;
  constexpr Duration kMax = 1_s;
  if (failures % servers != 0) return {};
  const size_t rounds = failures / servers;
  return std::min(kFirst * (int64_t{1} << std::min<size_t>(rounds - 1, 10)), kMax);
}

}  // namespace cairn::rpc
