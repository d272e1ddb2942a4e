// SPDX-License-Identifier: Apache-2.0
#include "apps/common/log.h"

#include <fmt/format.h>

#include <cstdio>

namespace cairn::apps {

std::function<void(config::LogLevel, std::string_view)> log_to_stderr(config::LogLevel min) {
  return [min](config::LogLevel level, std::string_view line) {
    if (level >= min) fmt::print(stderr, "cairn: {}: {}\n", name(level), line);
  };
}

}  // namespace cairn::apps
