// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"

namespace cairn::apps {

void FieldTable::add(std::string name, nlohmann::ordered_json value, std::string shown,
                     std::string meaning) {
  json_[name] = std::move(value);
  rows_.push_back({std::move(name), std::move(shown), std::move(meaning)});
}

void FieldTable::number(std::string name, uint64_t value, std::string meaning) {
  add(std::move(name), value, fmt::to_string(value), std::move(meaning));
}

void FieldTable::bits(std::string name, uint64_t value, std::string meaning) {
  add(std::move(name), value, value == 0 ? "0" : fmt::format("{:#x}", value), std::move(meaning));
}

void FieldTable::large(std::string name, const nvme::Le128& value, std::string meaning) {
  const std::string digits = decimal_text(value);
  nlohmann::ordered_json json = digits;
  if (value.high == 0) json = value.low.value();
  add(std::move(name), std::move(json), digits, std::move(meaning));
}

void FieldTable::text(std::string name, std::string_view value, std::string meaning) {
  add(std::move(name), std::string(value), escaped(value), std::move(meaning));
}

void FieldTable::json_only(std::string name, nlohmann::ordered_json value) {
  json_[name] = std::move(value);
}

void FieldTable::line(std::string text) { rows_.push_back({.name = "", .value = std::move(text)}); }

std::string FieldTable::table() const {
  size_t name_width = 0;
  size_t value_width = 0;
  for (const Row& row : rows_) {
    name_width = std::max(name_width, row.name.size());
    // A long text without a meaning behind it moves nobody else's.
    if (!row.name.empty() && !row.meaning.empty()) {
      value_width = std::max(value_width, row.value.size());
    }
  }
  std::string out;
  for (const Row& row : rows_) {
    if (row.name.empty()) {
      out += row.value + "\n";
    } else if (row.meaning.empty()) {
      out += fmt::format("{:<{}}  {}\n", row.name, name_width, row.value);
    } else {
      out += fmt::format("{:<{}}  {:<{}}  {}\n", row.name, name_width, row.value, value_width,
                         row.meaning);
    }
  }
  return out;
}

std::string bit_names(uint64_t value, std::initializer_list<BitName> names) {
  std::string out;
  for (const BitName& each : names) {
    if ((value & each.bit) != each.bit) continue;
    if (!out.empty()) out += ", ";
    out += each.name;
  }
  return out.empty() ? "none" : out;
}

std::string counted(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string celsius_text(uint16_t kelvin) {
  return kelvin == 0 ? "not reported" : fmt::format("{} C", static_cast<int>(kelvin) - 273);
}

std::string hex_text(std::span<const uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string decimal_text(const nvme::Le128& value) {
  unsigned __int128 rest = value.high.value();
  rest = rest << 64 | value.low.value();
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  std::ranges::reverse(digits);
  return digits;
}

}  // namespace cairn::apps
