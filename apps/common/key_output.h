// SPDX-License-Identifier: Apache-2.0
// Where a command puts a key that it has made.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"

namespace cairn::apps {

// A new key's text to the file, or to the terminal when none is named. The caller wipes it.
Attempt<int> hand_over_key(std::string_view text, const std::string& path);

}  // namespace cairn::apps
