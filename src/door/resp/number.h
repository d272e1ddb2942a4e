// SPDX-License-Identifier: Apache-2.0
// Numbers in words of clients and in values, exactly as Redis reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::door::resp {

// A 64-bit number as it would be written: no sign but '-', no leading zeroes or spaces, no "-0".
std::optional<int64_t> parse_integer(std::string_view text);
// The same without a sign, up to 2^64 - 1; leading zeroes are allowed.
std::optional<uint64_t> parse_unsigned(std::string_view text);

// A real number of any form that strtold takes, "inf" included; none: it is something else, NaN, or
// too large.
std::optional<long double> parse_real(std::string_view text);
// Without exponent and without zeroes at the end: "10.5", "3".
std::string format_real(long double value);

}  // namespace cairn::door::resp
