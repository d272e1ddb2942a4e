// SPDX-License-Identifier: Apache-2.0
#include "bench/crc_cost.h"

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "bench/workload.h"

namespace cairn::bench {

double crc32c_ns(const Crc32cPath& path, size_t size, uint64_t bytes, bool copies) {
  std::vector<std::byte> from(size);
  std::vector<std::byte> to(size);
  Rng(size).fill(from);
  const uint64_t count = std::max<uint64_t>(bytes / (size + 100), 1);
  uint32_t state = 0;
  const auto run = [&](uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
      state = copies ? path.copy(state, to.data(), from.data(), size)
                     : path.add(state, from.data(), size);
    }
  };
  run(count / 10 + 1);
  const Time start = now();
  run(count);
  const Duration took = now() - start;
  volatile const uint32_t kept = state;  // or nothing need be computed
  (void)kept;
  return static_cast<double>(took.ns) / static_cast<double>(count);
}

}  // namespace cairn::bench
