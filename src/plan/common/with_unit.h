// SPDX-License-Identifier: Apache-2.0
// Numbers of TOML files that carry their unit: "50 us", "16 KiB", "10 Gb/s".
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "base/words.h"
#include "config/toml.h"

namespace cairn::plan {

struct Unit {
  std::string_view name;
  double factor;
};

// A number of at least 0 in the unit with factor 1. A bare number has no unit and is refused.
template <size_t N>
Attempt<double> with_unit(const config::TomlValue& value, const std::array<Unit, N>& units) {
  std::string known;
  for (const Unit& unit : units) known += fmt::format("{}{}", known.empty() ? "" : ", ", unit.name);
  const std::string* text = value.get<std::string>();
  if (text == nullptr) {
    return refuse(
        fmt::format("needs a unit: a text like \"50 {}\" with one of {}", units[1].name, known));
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  std::string_view unit(end, text->data() + text->size() - end);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc{} || !(number >= 0) || number > 1e15) {
    return refuse(
        fmt::format("is a number of at least 0 with a unit ({}), not {}", known, in_quotes(*text)));
  }
  for (const Unit& one : units) {
    if (one.name == unit) return number * one.factor;
  }
  return refuse(fmt::format("has {}; its unit must be one of {}",
                            unit.empty() ? "no unit" : "unit " + in_quotes(unit), known));
}

}  // namespace cairn::plan
