// SPDX-License-Identifier: Apache-2.0
// JSON as the commands print it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cairn::config {

// Indented, with a final newline. Bytes that are not UTF-8 (a path may have them) are replaced.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace cairn::config
