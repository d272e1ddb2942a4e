// SPDX-License-Identifier: Apache-2.0
// The words that heads of requests and of responses are made of (RFC 9110, 5.6).
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn::http {

// Letters of ASCII alone, whatever the locale.
char lower(char c);
bool same_word(std::string_view a, std::string_view b);
// Without spaces and tabs around it.
std::string_view trim(std::string_view text);
// Whether all of the text is a number, without sign or space.
bool read_number(std::string_view text, uint64_t& number);
// A method or the name of a field.
bool is_token(std::string_view text);
// What a field may hold: no control characters but tabs.
bool is_printable(std::string_view text);

}  // namespace cairn::http
