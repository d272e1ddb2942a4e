// SPDX-License-Identifier: Apache-2.0
// The layers of stacks for Prometheus.
#include <algorithm>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/metrics_text.h"
#include "server/control/health_json.h"
#include "server/serve/show.h"

namespace cairn::server {

namespace {

using Type = MetricsText::Type;

struct Layer {
  std::string drive;
  std::string path;
  Json json;
};

std::vector<Layer> layers_of(const Json& answer) {
  std::vector<Layer> layers;
  for (const Json& drive : list_at(answer, "drives")) {
    for (const Json& layer : list_at(drive, "layers")) {
      const bool has_figures = text_at(layer, "problem").empty();
      if (has_figures) layers.push_back({text_at(drive, "name"), text_at(layer, "path"), layer});
    }
  }
  return layers;
}

LatencyBuckets latency_of(const Json& layer) {
  LatencyBuckets latency;
  const std::vector<Json> counts = list_at(layer, "latency_counts");
  for (size_t i = 0; i < std::min(counts.size(), latency.counts.size()); ++i) {
    if (counts[i].is_number_unsigned()) latency.counts[i] = counts[i].get<uint64_t>();
  }
  latency.sum.ns = static_cast<int64_t>(number_at(layer, "latency_sum_ns"));
  return latency;
}

}  // namespace

void add_layers(MetricsText& text, const Json& answer) {
  const std::vector<Layer> layers = layers_of(answer);
  const auto add = [&](Type type, const char* name, const char* help, const char* key) {
    text.family(type, name, help);
    for (const Layer& each : layers) {
      text.sample(
          {{"drive", each.drive}, {"path", each.path}, {"layer", text_at(each.json, "name")}},
          number_at(each.json, key));
    }
  };
  const auto add_each = [&](Type type, const char* name, const char* help, const char* key,
                            const char* label) {
    text.family(type, name, help);
    for (const Layer& each : layers) {
      const Json values = each.json.value(key, Json::object());
      for (const auto& [word, value] : values.items()) {
        text.sample({{"drive", each.drive},
                     {"path", each.path},
                     {"layer", text_at(each.json, "name")},
                     {label, word}},
                    number_at(values, word.c_str()));
      }
    }
  };
  add_each(Type::kCounter, "cairn_layer_requests_total", "Requests that a layer has done, by kind.",
           "requests", "kind");
  add(Type::kCounter, "cairn_layer_read_bytes_total", "Bytes read and compared through a layer.",
      "read_bytes");
  add(Type::kCounter, "cairn_layer_written_bytes_total", "Bytes written through a layer.",
      "written_bytes");
  add(Type::kCounter, "cairn_layer_errors_total", "Requests that a layer has failed.", "errors");
  add(Type::kGauge, "cairn_layer_in_flight", "Requests that a layer has not done yet.",
      "in_flight");
  add_each(Type::kGauge, "cairn_layer_fact", "What a layer tells of itself.", "facts", "name");
  text.family(Type::kHistogram, "cairn_layer_request_duration_seconds",
              "How long requests took in a layer and all below it.");
  for (const Layer& each : layers) {
    text.histogram(
        {{"drive", each.drive}, {"path", each.path}, {"layer", text_at(each.json, "name")}},
        latency_of(each.json));
  }
}

std::string metrics_text(const Json& answer) {
  MetricsText text;
  add_health(text, list_at(answer, "drives"));
  add_layers(text, answer);
  return text.text();
}

}  // namespace cairn::server
