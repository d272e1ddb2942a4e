// SPDX-License-Identifier: Apache-2.0
// Spans of time as users write them.
#pragma once

#include <string_view>

#include "base/problem.h"
#include "base/units.h"

namespace cairn {

// "500ms", "10s", "2m", "1h": from 1 ms to a day. The Problem says what is allowed.
Attempt<Duration> parse_duration(std::string_view text);
// "50us", "2ms": from 1 us to 999 ms.
Attempt<Duration> parse_short_duration(std::string_view text);

}  // namespace cairn
