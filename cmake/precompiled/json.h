// SPDX-License-Identifier: Apache-2.0
// The same for libraries whose sources write and read JSON, with what they all do to it.
#pragma once

#include "code.h"

#include <nlohmann/json.hpp>

namespace cairn::precompiled {

// Never called: what it uses of the templates is instantiated here and not in each source.
inline std::string use_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(text, nullptr, false);
  json["a"] = {{"number", 1}, {"text", text}};
  json["b"] = std::string(text);
  json["c"].push_back(uint64_t{1});
  json["c"].push_back(1.0);
  for (const Json& each : json) {
    if (each.is_object() && each.contains("text")) return each.value("text", std::string());
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) return key + value.get<std::string>();
  }
  if (json.at("b").get<uint64_t>() == 1) return {};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cairn::precompiled
