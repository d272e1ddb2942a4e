// SPDX-License-Identifier: Apache-2.0
#include "world/posix/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace cairn::posix {

void run_parallel(size_t threads, size_t count, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::jthread> others;
  const size_t wanted = std::min(threads, count);
  for (size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
}

size_t threads_here() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace cairn::posix
