// SPDX-License-Identifier: Apache-2.0
// The load that is to be protected: index lookups of a search engine, drawn anew from what the
// LeapIO paper says of its trace (section 5.3): reads only, 4 KB to 7 MB, mean 36 KB, median 32 KB.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace cairn::bench::leapio {

inline constexpr uint64_t kLookupMin = 4_KiB;
inline constexpr uint64_t kLookupMax = 7_MiB;

struct Lookup {
  Duration at;  // since the first
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct SearchLoad {
  double seconds = 2;         // that they come for
  double per_second = 5'000;  // at exponentially distributed times
  uint64_t space = 0;         // of the drive; at least kLookupMax
  uint64_t seed = 1;
};

// In order of time; offsets and sizes are multiples of 4 KiB. Sizes are log-normal, and one in two
// thousand is a long one, evenly spread over the decades above 1 MiB.
std::vector<Lookup> draw(const SearchLoad& load);

}  // namespace cairn::bench::leapio
