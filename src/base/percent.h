// SPDX-License-Identifier: Apache-2.0
// Percent encoding: how a value with any bytes stands in a URI (RFC 3986, 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cairn {

// None: a '%' without two hexadecimal digits behind it.
std::optional<std::string> percent_decode(std::string_view text);
// What has a meaning in a URI, is not ASCII or cannot be seen is encoded.
std::string percent_encode(std::string_view text);

}  // namespace cairn
