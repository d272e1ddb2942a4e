// SPDX-License-Identifier: Apache-2.0
#include "apps/log.h"

#include <fmt/format.h>

#include <cstdio>

namespace cairn::apps {

std::function<void(LogLevel, std::string_view)> log_to_stderr(LogLevel least) {
  return [least](LogLevel level, std::string_view line) {
    if (level >= least) fmt::print(stderr, "cairn: {}: {}\n", name(level), line);
  };
}

}  // namespace cairn::apps
