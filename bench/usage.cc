// SPDX-License-Identifier: Apache-2.0
#include "bench/usage.h"

#include <sys/resource.h>

namespace cairn::bench {

Usage usage_of(const env::Env& env) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto duration = [](const timeval& time) {
    return Duration{time.tv_sec * 1'000'000'000 + time.tv_usec * 1'000};
  };
  const Duration user = duration(used.ru_utime);
  return {.cpu = user + duration(used.ru_stime), .user = user, .kernel = env.kernel_calls()};
}

SideCost cost_between(const Usage& before, const Usage& after, double operations) {
  const auto share = [&](Duration from, Duration to) { return (to - from).us() / operations; };
  const auto count = [&](uint64_t from, uint64_t to) {
    return static_cast<double>(to - from) / operations;
  };
  return {.cpu_us = share(before.cpu, after.cpu),
          .system_calls = count(before.kernel.calls, after.kernel.calls),
          .sends = count(before.kernel.sends, after.kernel.sends),
          .user_us = share(before.user, after.user),
          .sending_us = share(before.kernel.sending, after.kernel.sending),
          .receiving_us = share(before.kernel.receiving, after.kernel.receiving)};
}

}  // namespace cairn::bench
