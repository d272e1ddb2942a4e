// SPDX-License-Identifier: Apache-2.0
// Patterns of keys: * ? [abc] [^a-z] and \, as Redis matches them.
#pragma once

#include <string_view>

namespace cairn::door::resp {

// Takes time of at most the product of both sizes, whatever the pattern.
bool matches(std::string_view pattern, std::string_view text, bool ignore_case = false);

}  // namespace cairn::door::resp
