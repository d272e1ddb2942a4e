// SPDX-License-Identifier: Apache-2.0
#include "drive/size_text.h"

#include <fmt/format.h>

#include <charconv>

namespace cairn::drive {

namespace {

constexpr std::string_view kKey = "size=";

// Whether what stands before a key is no part of a path: options of a medium follow "mem:" and
// commas, and no path has a comma.
bool begins_option(std::string_view before) {
  return before.ends_with(',') || before.ends_with("mem:");
}

}  // namespace

std::string size_text(uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::to_string(bytes) : fmt::format("{}{}", bytes, kUnits[unit - 1]);
}

std::string with_size_texts(std::string_view stack) {
  std::string text;
  for (size_t at = stack.find(kKey); at != stack.npos; at = stack.find(kKey)) {
    const std::string_view value = stack.substr(at + kKey.size());
    uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
    const auto digits = static_cast<size_t>(end - value.data());
    const bool is_whole = digits == value.size() || value[digits] == ',' || value[digits] == ')';
    const bool is_size = error == std::errc{} && is_whole && begins_option(stack.substr(0, at));
    text += stack.substr(0, at + kKey.size());
    if (is_size) text += size_text(bytes);
    stack = is_size ? value.substr(digits) : value;
  }
  return text.append(stack);
}

}  // namespace cairn::drive
