// SPDX-License-Identifier: Apache-2.0
#include "trace/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cairn::trace {

namespace {

constexpr size_t kShownMax = 60;

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The digits after the point, as a number of nanoseconds of `unit`.
std::optional<Nanos> part_of(std::string_view digits, Nanos unit) {
  Nanos value = 0;
  Nanos weight = unit;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    weight /= 10;
    value += (digit - '0') * weight;
  }
  return value;
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kShownMax)) {
    out += c >= ' ' && c <= '~' ? std::string(1, c)
                                : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  return out + (text.size() > kShownMax ? "...'" : "'");
}

Row::Row(std::string_view line, char separator, std::span<const char* const> names)
    : names_(names) {
  while (!line.empty() && count_ < kFieldsMax) {
    const size_t end = std::min(line.find(separator), line.size());
    if (end > 0 || separator == ',') fields_[count_++] = line.substr(0, end);
    if (end + 1 == line.size() && separator == ',' && count_ < kFieldsMax) fields_[count_++] = {};
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

void Row::refuse(size_t field, std::string text) {
  if (!mistake_) mistake_ = Mistake{.field = name(field), .text = std::move(text)};
}

void Row::expect_all() {
  if (count_ == names_.size()) return;
  if (count_ < names_.size()) return refuse(count_, "is missing");
  refuse(names_.size(), fmt::format("has more than {} fields", names_.size()));
}

uint64_t Row::whole(size_t field, uint64_t max) {
  const std::optional<uint64_t> value = number((*this)[field]);
  if (!value) {
    refuse(field, fmt::format("{} is not a whole number", shown((*this)[field])));
    return 0;
  }
  if (*value > max) {
    refuse(field, fmt::format("{} is larger than {}", *value, max));
    return 0;
  }
  return *value;
}

Nanos Row::time(size_t field, Nanos unit) {
  const std::string_view text = (*this)[field];
  const size_t point = text.find('.');
  const std::optional<uint64_t> units = number(text.substr(0, point));
  const std::optional<Nanos> part = point == std::string_view::npos
                                        ? std::optional<Nanos>(0)
                                        : part_of(text.substr(point + 1), unit);
  if (!units || !part) {
    refuse(field, fmt::format("{} is not a time", shown(text)));
    return 0;
  }
  if (*units >= static_cast<uint64_t>(kArrivalMax / unit)) {
    refuse(field, fmt::format("{} is too late: times go to {}", shown(text), kArrivalMax / unit));
    return 0;
  }
  return static_cast<Nanos>(*units) * unit + *part;
}

void Row::offset(size_t field, uint64_t unit, Record& into) {
  into.offset = whole(field, kOffsetMax / unit) * unit;
}

void Row::bytes(size_t field, uint64_t unit, Record& into) {
  into.bytes = static_cast<uint32_t>(whole(field, kRequestBytesMax / unit) * unit);
  if (into.bytes == 0) refuse(field, "is zero: a request has a length");
}

void Row::direction(size_t field, std::string_view read, std::string_view write, Record& into) {
  const std::string_view text = (*this)[field];
  into.write = text == write;
  if (text != read && text != write) {
    refuse(field, fmt::format("{} is neither {} (read) nor {} (write)", shown(text), read, write));
  }
}

}  // namespace cairn::trace
