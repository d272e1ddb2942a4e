// SPDX-License-Identifier: Apache-2.0
// Which seeds a simulated test runs with.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace cairn::conformance {

// 1 to `count`. CAIRN_SEED=n: only that one, to repeat a failure. CAIRN_SEEDS=n: so many, for a
// long search.
inline std::vector<uint64_t> seeds(uint64_t count) {
  if (const char* one = std::getenv("CAIRN_SEED")) return {std::stoull(one)};
  if (const char* many = std::getenv("CAIRN_SEEDS")) count = std::stoull(many);
  std::vector<uint64_t> all;
  for (uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

}  // namespace cairn::conformance
