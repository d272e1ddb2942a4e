// SPDX-License-Identifier: Apache-2.0
#include "door/resp/glob.h"

#include <cstddef>
#include <utility>

namespace cairn::door::resp {

namespace {

char folded(char c, bool ignore_case) {
  return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Whether `c` is in the class that begins behind a '['; takes the class and its ']', which may be
// missing at the end.
bool take_class(std::string_view& pattern, char c, bool ignore_case) {
  const bool is_inverted = pattern.starts_with('^');
  if (is_inverted) pattern.remove_prefix(1);
  bool is_in = false;
  const auto u = [&](char each) { return static_cast<unsigned char>(folded(each, ignore_case)); };
  while (!pattern.empty() && pattern.front() != ']') {
    if (pattern.front() == '\\' && pattern.size() >= 2) {
      is_in |= pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      auto low = u(pattern[0]);
      auto high = u(pattern[2]);
      if (low > high) std::swap(low, high);
      is_in |= u(c) >= low && u(c) <= high;
      pattern.remove_prefix(3);
    } else {
      is_in |= u(pattern.front()) == u(c);
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return is_in != is_inverted;
}

// Whether the first part of the pattern, no star, is `c`; takes it.
bool take_one(std::string_view& pattern, char c, bool ignore_case) {
  const char first = pattern.front();
  pattern.remove_prefix(1);
  if (first == '?') return true;
  if (first == '[') return take_class(pattern, c, ignore_case);
  if (first == '\\' && !pattern.empty()) {
    const char literal = pattern.front();
    pattern.remove_prefix(1);
    return folded(literal, ignore_case) == folded(c, ignore_case);
  }
  return folded(first, ignore_case) == folded(c, ignore_case);
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text, bool ignore_case) {
  // Only the last star is tried again: what earlier ones took can stay as it is.
  std::string_view after_star;
  std::string_view star_text;
  bool has_star = false;
  while (!text.empty()) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      after_star = pattern;
      star_text = text;
      has_star = true;
      continue;
    }
    if (!pattern.empty()) {
      std::string_view rest = pattern;
      if (take_one(rest, text.front(), ignore_case)) {
        pattern = rest;
        text.remove_prefix(1);
        continue;
      }
    }
    if (!has_star) return false;
    star_text.remove_prefix(1);
    text = star_text;
    pattern = after_star;
  }
  while (pattern.starts_with('*')) pattern.remove_prefix(1);
  return pattern.empty();
}

}  // namespace cairn::door::resp
