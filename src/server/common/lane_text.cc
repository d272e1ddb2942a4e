// SPDX-License-Identifier: Apache-2.0
#include "server/common/lane_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace cairn::server {

namespace {

using Json = nlohmann::ordered_json;

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void add_item(std::string& text, std::string_view word) {
  if (!text.empty()) text += ", ";
  text += word;
}

}  // namespace

Json json_of(const fabric::LaneTraffic& traffic) {
  const fabric::LaneCounters& out = traffic.out;
  Json rings = Json::object();
  for (size_t i = 0; i < out.rings.size(); ++i) {
    rings[name(static_cast<fabric::RingCause>(i))] = out.rings[i];
  }
  Json sizes = Json::object();
  for (size_t i = 0; i < out.sizes.size(); ++i) sizes[kCaravanSizes[i]] = out.sizes[i];
  return {{"sends", out.sends},
          {"messages", out.messages},
          {"messages_per_send", ratio(out.messages, out.sends)},
          {"bytes", out.bytes},
          {"timers", out.timers},
          {"caravans", std::move(sizes)},
          {"rings", std::move(rings)},
          {"received",
           {{"reads", traffic.in.reads},
            {"pdus", traffic.in.pdus},
            {"pdus_per_read", ratio(traffic.in.pdus, traffic.in.reads)},
            {"bytes", traffic.in.bytes}}}};
}

std::string ratio_text(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.2f}", ratio(part, whole));
}

std::string causes_text(const fabric::LaneCounters& counters) {
  std::string text;
  for (size_t i = 0; i < counters.rings.size(); ++i) {
    if (counters.rings[i] == 0) continue;
    add_item(text,
             fmt::format("{} {}", name(static_cast<fabric::RingCause>(i)), counters.rings[i]));
  }
  return text.empty() ? "none" : text;
}

std::string sizes_text(const fabric::LaneCounters& counters) {
  std::string text;
  for (size_t i = 0; i < counters.sizes.size(); ++i) {
    if (counters.sizes[i] == 0) continue;
    add_item(text, fmt::format("{}: {}", kCaravanSizes[i], counters.sizes[i]));
  }
  return text.empty() ? "none" : text;
}

}  // namespace cairn::server
