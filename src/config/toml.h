// SPDX-License-Identifier: Apache-2.0
// TOML as a plain tree in which every key and value knows where it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cairn::config {

// Counted from 1, columns in characters.
struct Position {
  uint32_t line = 1;
  uint32_t column = 1;
  friend auto operator<=>(Position, Position) = default;
};

struct TomlEntry;

// One value of a file.
struct TomlValue {
  struct DateOrTime {};  // TOML has them; nothing in Cairn is configured with one
  using List = std::vector<TomlValue>;
  using Table = std::vector<TomlEntry>;  // in the order of the file

  Position place;
  std::variant<Table, List, bool, int64_t, double, std::string, DateOrTime> data;

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
};

struct TomlEntry {
  std::string key;
  Position place;  // of the key
  TomlValue value;
};

// "a table", "an integer", ...: for "this is ...".
std::string_view kind_of(const TomlValue& value);

struct TomlError {
  Position place;
  std::string text;
};

// More parts than this in one dotted key ("a.b.c") are refused, so that a hostile file cannot make
// a tree too deep to walk.
inline constexpr size_t kDottedPartsMax = 16;

// Any bytes: the root table, or the first error.
std::expected<TomlValue, TomlError> parse_toml(std::string_view text);

}  // namespace cairn::config
