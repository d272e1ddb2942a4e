// SPDX-License-Identifier: Apache-2.0
// What `cairn status` and `cairn demo` say of a `cairn up`.
#pragma once

#include <cstdint>
#include <string>

#include "server/control/control_format.h"

namespace cairn::apps {

// "4 s", "3 min 20 s", "2 h 5 min", "3 d 4 h".
std::string age_text(uint64_t seconds);

// A line with the health and nothing else; three for each reason, with the command to run at the
// end; drives, volumes, where it is reached, and what happened lately.
std::string up_status_text(const server::Json& status);
// One reason, without the end of the line: "degraded: drive d2: ... (for 3 s, 40% done, 5 s left)".
std::string up_reason_text(const server::Json& reason);

}  // namespace cairn::apps
