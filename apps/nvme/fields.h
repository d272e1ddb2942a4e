// SPDX-License-Identifier: Apache-2.0
// A structure of the NVMe specification as people and scripts see it: one row per field, named as
// nvme-cli names it, with its value and what that means.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvme/format/field.h"

namespace cairn::apps {

class FieldTable {
 public:
  // A number; `meaning` may be empty.
  void number(std::string name, uint64_t value, std::string meaning = "");
  // The same, shown in hexadecimal to people.
  void bits(std::string name, uint64_t value, std::string meaning = "");
  // Beyond 64 bits JSON has decimal digits in a string.
  void large(std::string name, const nvme::Le128& value, std::string meaning = "");
  // Text from the target; what a terminal might obey is escaped.
  void text(std::string name, std::string_view value, std::string meaning = "");
  // Only for scripts: an array, an object.
  void json_only(std::string name, nlohmann::ordered_json value);
  // Only for people.
  void line(std::string text);

  const nlohmann::ordered_json& json() const { return json_; }
  // Aligned; a row each.
  std::string table() const;

 private:
  struct Row {
    std::string name;
    std::string value;
    std::string meaning;
  };
  void add(std::string name, nlohmann::ordered_json value, std::string shown, std::string meaning);

  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
  std::vector<Row> rows_;
};

// "compare, write zeroes" of the bits that are set; "none" when no named one is.
struct BitName {
  uint64_t bit = 0;
  const char* name = "";
};
std::string bit_names(uint64_t value, std::initializer_list<BitName> names);

// "1 block", "2 blocks".
std::string counted(uint64_t count, std::string_view what);
// "40 C"; "not reported" of 0 K.
std::string celsius_text(uint16_t kelvin);
// "00112233...": bytes in their order.
std::string hex_text(std::span<const uint8_t> bytes);
// Decimal digits of 128 bits.
std::string decimal_text(const nvme::Le128& value);

}  // namespace cairn::apps
