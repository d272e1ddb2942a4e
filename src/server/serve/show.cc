// SPDX-License-Identifier: Apache-2.0
#include "server/serve/show.h"

#include <cmath>
#include <utility>

namespace cairn::server {

namespace {

using drive::LayerInfo;

uint64_t whole_number(double value) { return static_cast<uint64_t>(std::llround(value)); }

Json figures_json(const drive::LayerFigures& figures) {
  constexpr const char* kKinds[] = {"read",  "write",   "compare",     "compare_and_write",
                                    "flush", "discard", "write_zeroes"};
  Json requests = Json::object();
  for (size_t i = 0; i < figures.kKinds; ++i) requests[kKinds[i]] = figures.requests[i];
  return {{"requests", std::move(requests)},
          {"read_bytes", figures.read_bytes},
          {"written_bytes", figures.written_bytes},
          {"cleared_bytes", figures.cleared_bytes},
          {"errors", figures.errors},
          {"in_flight", figures.in_flight},
          {"iops", whole_number(figures.requests_per_second)},
          {"bytes_per_second", whole_number(figures.bytes_per_second)},
          {"p50_ns", figures.p50.ns},
          {"p99_ns", figures.p99.ns},
          {"max_ns", figures.longest.ns},
          {"latency_counts", figures.latency.counts},
          {"latency_sum_ns", static_cast<uint64_t>(figures.latency.sum.ns)}};
}

void add_layers(const LayerInfo& layer, Json& into) {
  Json json = {{"path", layer.path}, {"name", layer.name}, {"is_leaf", layer.is_leaf}};
  Json options = Json::object();
  for (const auto& option : layer.options) options[option.key] = option.value;
  json["options"] = std::move(options);
  if (!layer.problem.empty()) {
    json["problem"] = layer.problem;
  } else {
    const drive::Geometry& shape = layer.geometry;
    json.update({{"size", shape.bytes()},
                 {"block_size", shape.block_size},
                 {"transfer_blocks", shape.transfer_blocks},
                 {"atomic_blocks", shape.atomic_blocks},
                 {"volatile_cache", shape.volatile_cache},
                 {"copies", shape.copies}});
    json.update(figures_json(layer.figures));
    Json facts = Json::object();
    for (const auto& [name, value] : layer.facts) facts[name] = value;
    json["facts"] = std::move(facts);
  }
  into.push_back(std::move(json));
  for (const LayerInfo& below : layer.below) add_layers(below, into);
}

}  // namespace

Json layers_json(const LayerInfo& top) {
  Json layers = Json::array();
  add_layers(top, layers);
  return layers;
}

}  // namespace cairn::server
