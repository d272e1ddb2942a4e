// SPDX-License-Identifier: Apache-2.0
#include "world/posix/parallel.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::posix {
namespace {

TEST(Parallel, EachJobRunsOnceOnAnyNumberOfThreads) {
  for (const size_t threads : {0, 1, 3, 64}) {
    std::vector<int> runs(100);
    run_parallel(threads, runs.size(), [&](size_t i) { ++runs[i]; });
    EXPECT_EQ(runs, std::vector<int>(100, 1)) << threads;
  }
  run_parallel(2, 0, [](size_t) { FAIL(); });
}

}  // namespace
}  // namespace cairn::posix
