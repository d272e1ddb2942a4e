// SPDX-License-Identifier: Apache-2.0
#include "loadgen/meters.h"

#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace cairn::loadgen {

Time now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return {static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec};
}

void pass_time(Duration duration) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(duration.ns));
}

Duration cpu_time() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000 + time.tv_usec;
  };
  return {(us(usage.ru_utime) + us(usage.ru_stime)) * 1000};
}

}  // namespace cairn::loadgen
