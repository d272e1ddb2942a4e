// SPDX-License-Identifier: Apache-2.0
// Values of a reference's configuration: JSON that has numbers also as texts.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

#include "base/problem.h"
#include "base/words.h"

namespace cairn::plan {

inline std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// From 0 to below `limit`. The Problem begins after the key: "is a number ...".
inline Attempt<double> number_of(const nlohmann::json& value, double limit = 1e18) {
  const std::string text = text_of(value);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 0 && number < limit) {
    return number;
  }
  return refuse(fmt::format("is a number of at least 0, not {}", in_quotes(text)));
}

}  // namespace cairn::plan
