// SPDX-License-Identifier: Apache-2.0
#include "door/resp/number.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cairn::door::resp {

namespace {

// The longest number without exponent, and its fraction.
constexpr size_t kRealBytesMax = 5UL * 1024;

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.empty() || text == "-0") return std::nullopt;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<long double> parse_real(std::string_view text) {
  const bool begins_with_space =
      !text.empty() && (text[0] == ' ' || (text[0] >= 9 && text[0] <= 13));
  if (text.empty() || text.size() >= kRealBytesMax || begins_with_space) return std::nullopt;
  const std::string room(text);
  char* end = nullptr;
  errno = 0;
  const long double value = std::strtold(room.c_str(), &end);
  if (end != room.c_str() + text.size() || std::isnan(value)) return std::nullopt;
  const bool is_out_of_range =
      errno == ERANGE && (std::isinf(value) || std::fpclassify(value) == FP_ZERO);
  if (is_out_of_range) return std::nullopt;
  return value;
}

std::string format_real(long double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text(kRealBytesMax, '\0');
  const int size = std::snprintf(text.data(), text.size(), "%.17Lf", value);
  text.resize(static_cast<size_t>(size));
  if (text.find('.') != std::string::npos) {
    text.resize(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  if (text == "-0") text = "0";
  return text;
}

}  // namespace cairn::door::resp
