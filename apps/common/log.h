// SPDX-License-Identifier: Apache-2.0
// What long-running commands tell about their life: a line each on stderr, never on the I/O path.
#pragma once

#include <functional>
#include <string_view>

#include "config/settings.h"

namespace cairn::apps {

// Prints "cairn: warn: LINE" for lines of at least this level.
std::function<void(config::LogLevel, std::string_view)> log_to_stderr(config::LogLevel min);

}  // namespace cairn::apps
