// SPDX-License-Identifier: Apache-2.0
// Stacks as trees for people.
#include <fmt/format.h>

#include <algorithm>

#include "base/table.h"
#include "base/units.h"
#include "drive/size_text.h"
#include "drive/source.h"
#include "server/control/health_json.h"
#include "server/serve/show.h"
#include "stack/services.h"

namespace cairn::server {

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

std::string pairs_text(const Json& object) {
  std::string text;
  if (!object.is_object()) return text;
  for (const auto& [key, value] : object.items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

constexpr const char* kUnknown = "-";

std::string count_at(const Json& layer, const char* name) {
  return layer.contains(name) ? fmt::to_string(number_at(layer, name)) : kUnknown;
}

std::string megabytes_at(const Json& layer, const char* name) {
  if (!layer.contains(name)) return kUnknown;
  return fmt::format("{:.1f}", static_cast<double>(number_at(layer, name)) / 1e6);
}

// The clock of a core stands still while it works: what was done without waiting has no time.
std::string time_at(const Json& layer, const char* name) {
  const uint64_t ns = number_at(layer, name);
  return ns == 0 ? kUnknown : text(Duration{static_cast<int64_t>(ns)});
}

// A layer's place in the tree, its name and its options.
std::string title_of(const std::vector<Json>& layers, size_t at) {
  const std::string options = pairs_text(layers[at].value("options", Json::object()));
  return fmt::format("{}{}{}{}", branch(layers, at),
                     drive::with_size_texts(text_at(layers[at], "name")),
                     options.empty() ? "" : " ", options);
}

std::vector<std::string> row_of(const std::vector<Json>& layers, size_t at) {
  const Json& layer = layers[at];
  const std::string name = title_of(layers, at);
  const std::string problem = text_at(layer, "problem");
  if (!problem.empty()) {
    const std::string size =
        layer.contains("size") ? text_bytes(number_at(layer, "size")) : kUnknown;
    return {name, size, kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, problem};
  }
  return {name,
          text_bytes(number_at(layer, "size")),
          count_at(layer, "iops"),
          megabytes_at(layer, "bytes_per_second"),
          time_at(layer, "p50_ns"),
          time_at(layer, "p99_ns"),
          count_at(layer, "in_flight"),
          count_at(layer, "errors"),
          pairs_text(layer.value("facts", Json::object()))};
}

std::string title_of_drive(const Json& drive) {
  const std::string health = text_at(drive, "health");
  return health.empty() ? text_at(drive, "name")
                        : fmt::format("{} ({})", text_at(drive, "name"), health);
}

std::string what_is(const drive::Stack& layer) {
  if (!layer.is_leaf) return std::string(drive::find_service(layer.name)->what);
  if (layer.name.find("://") != std::string::npos) return "a drive elsewhere";
  const auto spec = drive::Spec::parse(layer.name);
  if (!spec) return "";
  const std::string size = spec->size == 0 ? "as large as it is" : text_bytes(spec->size);
  switch (spec->kind) {
    case drive::Spec::Kind::kMemory:
      return "memory, " + size;
    case drive::Spec::Kind::kFile:
      return "a file or device, " + size;
    case drive::Spec::Kind::kFlash:
      return "a modelled SSD, " + size;
  }
  return "";
}

void add_plan(const drive::Stack& layer, const std::string& path, Json& into) {
  Json options = Json::object();
  for (const auto& option : layer.options) options[option.key] = option.value;
  into.push_back({{"path", path},
                  {"name", layer.name},
                  {"is_leaf", layer.is_leaf},
                  {"options", std::move(options)},
                  {"what", what_is(layer)}});
  for (size_t i = 0; i < layer.below.size(); ++i) {
    add_plan(layer.below[i], fmt::format("{}.{}", path, i), into);
  }
}

}  // namespace

Json plan_json(const drive::Stack& stack) {
  Json layers = Json::array();
  add_plan(stack, "0", layers);
  return layers;
}

std::string plan_text(const drive::Stack& stack) {
  const std::vector<Json> layers = plan_json(stack);
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < layers.size(); ++i) {
    rows.push_back({title_of(layers, i), text_at(layers[i], "what")});
  }
  return table_text(rows);
}

std::string show_text(const Json& answer) {
  std::string text;
  for (const Json& drive : list_at(answer, "drives")) {
    std::vector<std::vector<std::string>> rows = {{title_of_drive(drive), "SIZE", "IOPS", "MB/S",
                                                   "P50", "P99", "IN FLIGHT", "ERRORS", "FACTS"}};
    const std::vector<Json> layers = list_at(drive, "layers");
    for (size_t i = 0; i < layers.size(); ++i) rows.push_back(row_of(layers, i));
    text += (text.empty() ? "" : "\n") + table_text(rows) + health_lines(drive);
  }
  return text;
}

}  // namespace cairn::server
