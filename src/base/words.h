// SPDX-License-Identifier: Apache-2.0
// Small help with words in messages: quoting what somebody typed, and guessing what they meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cairn {

// 'text', fit for a terminal: bytes that are not printable ASCII or UTF-8 become \xNN, and a long
// text is cut with "...".
std::string in_quotes(std::string_view text);

// The same without quotes and whole.
std::string escaped(std::string_view text);

// "a, b, c".
std::string comma_list(std::span<const std::string> words);
// The same of names that there may be hundreds of: the first few, "and 190 more".
std::string first_few(std::span<const std::string> names);

// "0-3,8", of ascending numbers.
std::string range_list(std::span<const int> numbers);

// The one of `words` that is at most a third of its letters away from `typed` (swapped neighbours
// count once), the first of the nearest; empty when none is. Ignores case.
std::string_view nearest(std::string_view typed, std::span<const std::string> words);

// "; did you mean 'doctor'?", or "" when nothing is near.
std::string did_you_mean(std::string_view typed, std::span<const std::string> words);

}  // namespace cairn
