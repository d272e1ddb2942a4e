// SPDX-License-Identifier: Apache-2.0
// Stacks as trees for people.
#include <fmt/format.h>

#include <algorithm>

#include "apps/drive/control.h"
#include "apps/table.h"
#include "base/units.h"

namespace cairn::apps {

namespace {

size_t depth_of(const std::string& path) {
  return static_cast<size_t>(std::ranges::count(path, '.'));
}

// Whether a sibling of the layer's ancestor at `depth`, or of itself, follows after `at`.
bool has_more(const std::vector<Json>& layers, size_t at, size_t depth) {
  for (size_t i = at + 1; i < layers.size(); ++i) {
    const size_t other = depth_of(text_at(layers[i], "path"));
    if (other < depth) return false;
    if (other == depth) return true;
  }
  return false;
}

std::string branch(const std::vector<Json>& layers, size_t at) {
  const size_t depth = depth_of(text_at(layers[at], "path"));
  std::string text;
  for (size_t i = 1; i < depth; ++i) text += has_more(layers, at, i) ? "|  " : "   ";
  if (depth > 0) text += has_more(layers, at, depth) ? "+- " : "`- ";
  return text;
}

std::string words_of(const Json& object) {
  std::string text;
  if (!object.is_object()) return text;
  for (const auto& [key, value] : object.items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

std::string time_at(const Json& layer, const char* name) {
  return text(Duration{static_cast<int64_t>(number_at(layer, name))});
}

std::vector<std::string> row_of(const std::vector<Json>& layers, size_t at) {
  const Json& layer = layers[at];
  const std::string options = words_of(layer.value("options", Json::object()));
  const std::string name = fmt::format("{}{}{}{}", branch(layers, at), text_at(layer, "name"),
                                       options.empty() ? "" : " ", options);
  const std::string problem = text_at(layer, "problem");
  if (!problem.empty()) return {name, problem};
  return {name,
          text_bytes(number_at(layer, "size")),
          fmt::to_string(number_at(layer, "iops")),
          fmt::format("{:.1f}", static_cast<double>(number_at(layer, "bytes_per_second")) / 1e6),
          time_at(layer, "p50_ns"),
          time_at(layer, "p99_ns"),
          fmt::to_string(number_at(layer, "in_flight")),
          fmt::to_string(number_at(layer, "errors")),
          words_of(layer.value("facts", Json::object()))};
}

}  // namespace

std::string show_text(const Json& answer) {
  std::string text;
  for (const Json& drive : list_at(answer, "drives")) {
    std::vector<std::vector<std::string>> rows = {{text_at(drive, "name"), "SIZE", "IOPS", "MB/S",
                                                   "P50", "P99", "IN FLIGHT", "ERRORS", "FACTS"}};
    const std::vector<Json> layers = list_at(drive, "layers");
    for (size_t i = 0; i < layers.size(); ++i) rows.push_back(row_of(layers, i));
    text += (text.empty() ? "" : "\n") + table_text(rows);
  }
  return text;
}

}  // namespace cairn::apps
