// SPDX-License-Identifier: Apache-2.0
// Search: requests like those of the search engine in the evaluation of the LeapIO paper (section
// 5.3): index lookups, read-only, 4 KB to 7 MB, 36 KB on average and 32 KB in the median.
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "trace/record.h"

namespace cairn::trace {

struct SearchOptions {
  uint64_t space = 10UL << 30;  // addresses are uniform in it; more than the largest request
  double per_second = 10'000;   // arrivals, at times that know nothing of each other
  uint64_t seed = 1;
};

inline constexpr uint32_t kSearchBytesMin = 4096;
inline constexpr uint32_t kSearchBytesMax = 7U << 20;

// Sizes and addresses are multiples of 4 KiB.
class Search {
 public:
  explicit Search(const SearchOptions& options) : options_(options), rng_(options.seed) {}
  Record next();

 private:
  uint32_t draw_bytes();

  const SearchOptions options_;
  Rng rng_;
  double arrival_ = 0;
};

}  // namespace cairn::trace
