// SPDX-License-Identifier: Apache-2.0
// Processor time of this process.
#pragma once

#include <ctime>

namespace cairn::bench {

inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace cairn::bench
