// SPDX-License-Identifier: Apache-2.0
#include "plan/net/net_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "base/words.h"

namespace cairn::plan {

namespace {

using net::Picos;
using nlohmann::json;

constexpr uint64_t kNodesMax = 100'000;
constexpr uint64_t kLinksMax = 1'000'000;
constexpr int64_t kBytesMax = int64_t{1} << 40;
constexpr int64_t kTimeMaxNs = 1'000'000'000'000;
constexpr double kDelayMaxMs = 1e6;

int64_t integer(const json& object, const char* key, int64_t otherwise = -1) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  return found->is_number_integer() ? found->get<int64_t>() : -1;
}

Attempt<uint32_t> host_of(const json& flow, const char* key,
                          const std::map<int64_t, uint32_t>& hosts) {
  const int64_t node = integer(flow, key);
  const auto found = hosts.find(node);
  if (found == hosts.end()) {
    return refuse(fmt::format("{} {} is no host of its network", key, node));
  }
  return found->second;
}

Attempt<void> add_flow(const json& flow, const std::map<int64_t, uint32_t>& hosts,
                       NetListing& listing) {
  if (!flow.is_object()) return refuse("is not an object");
  const Attempt<uint32_t> from = host_of(flow, "src", hosts);
  if (!from) return std::unexpected(from.error());
  const Attempt<uint32_t> to = host_of(flow, "dst", hosts);
  if (!to) return std::unexpected(to.error());
  if (*from == *to) return refuse("goes from a host to itself");
  const int64_t bytes = integer(flow, "bytes");
  if (bytes <= 0 || bytes > kBytesMax) return refuse("needs bytes, from 1 to 2^40");
  const int64_t start = integer(flow, "start_ns");
  if (start < 0 || start > kTimeMaxNs) return refuse("needs start_ns, at most 1000 s");
  const int64_t priority = integer(flow, "pg", net::kDataPriority);
  if (priority < 1 || priority >= net::kPriorities) return refuse("needs pg, from 1 to 7");
  const int64_t port = integer(flow, "dport", net::kDestinationPort);
  if (port < 0 || port > UINT16_MAX) return refuse("needs dport, at most 65535");
  const int64_t time = integer(flow, "fct_ns");
  if (time > kTimeMaxNs) return refuse("has fct_ns above 1000 s");
  listing.flows.push_back({.tag = listing.flows.size(),
                           .source = *from,
                           .destination = *to,
                           .bytes = static_cast<uint64_t>(bytes),
                           .start = start * net::kNanosecond,
                           .priority = static_cast<uint8_t>(priority),
                           .destination_port = static_cast<uint16_t>(port)});
  listing.times.push_back(time < 0 ? std::nullopt : std::optional(time * net::kNanosecond));
  return {};
}

Attempt<void> add_flows(const json& run, const net::Topology& topology, NetListing& listing) {
  std::map<int64_t, uint32_t> hosts;
  for (uint32_t i = 0; i < topology.hosts().size(); ++i) hosts[topology.hosts()[i]] = i;
  const auto flows = run.find("flows");
  if (flows == run.end() || !flows->is_array() || flows->empty()) return refuse("lists no flows");
  for (const json& flow : *flows) {
    if (const Attempt<void> added = add_flow(flow, hosts, listing); !added) {
      return refuse(fmt::format("flow {} {}", listing.flows.size(), added.error().text));
    }
  }
  return {};
}

Attempt<void> add_pfc(const json& run, NetListing& listing) {
  const auto frames = run.find("pfc");
  if (frames == run.end()) return {};
  if (!frames->is_array()) return refuse("has a pfc that is no list");
  listing.pfc.emplace();
  for (const json& frame : *frames) {
    const bool is_sound =
        frame.is_array() && frame.size() == 4 && std::ranges::all_of(frame, [](const json& number) {
          return number.is_number_integer() && number >= 0 && number <= kTimeMaxNs;
        });
    if (!is_sound) {
      return refuse(fmt::format("pfc {} is not a list of ns, node, neighbour and 0 or 1",
                                listing.pfc->size()));
    }
    listing.pfc->push_back({.time = frame[0].get<int64_t>() * net::kNanosecond,
                            .node = frame[1].get<uint32_t>(),
                            .from = frame[2].get<uint32_t>(),
                            .pause = frame[3].get<int64_t>() != 0});
  }
  return {};
}

}  // namespace

Attempt<net::Topology> parse_hpcc_topology(std::string_view text) {
  std::istringstream words{std::string(text)};
  uint64_t nodes = 0;
  uint64_t switches = 0;
  uint64_t links = 0;
  words >> nodes >> switches >> links;
  if (!words || nodes == 0 || nodes > kNodesMax || switches > nodes || links > kLinksMax) {
    return refuse("begins with the numbers of nodes, switches and links");
  }
  std::vector<bool> is_switch(nodes);
  for (uint64_t i = 0; i < switches; ++i) {
    uint64_t node = 0;
    words >> node;
    if (!words || node >= nodes) {
      return refuse(fmt::format("has no node for its switch {} of {}", i + 1, switches));
    }
    is_switch[node] = true;
  }
  net::Topology topology;
  for (uint64_t i = 0; i < nodes; ++i) {
    if (is_switch[i]) {
      topology.add_switch(fmt::format("s{}", i));
    } else {
      topology.add_host(fmt::format("h{}", i));
    }
  }
  for (uint64_t i = 0; i < links; ++i) {
    uint64_t a = 0;
    uint64_t b = 0;
    std::string rate;
    double delay_ms = 0;
    std::string unit;
    double error_rate = 0;
    words >> a >> b >> rate >> delay_ms >> unit >> error_rate;
    const Attempt<uint64_t> bits_per_s = hpcc_rate(json(rate));
    const bool is_sound = words && a < nodes && b < nodes && bits_per_s && *bits_per_s > 0 &&
                          unit == "ms" && delay_ms >= 0 && delay_ms <= kDelayMaxMs;
    if (!is_sound) {
      return refuse(fmt::format(
          "link {} of {} is not two nodes, a rate, a delay in ms and an error rate, such as "
          "\"0 1 10Gbps 0.001ms 0\"",
          i + 1, links));
    }
    if (error_rate != 0) {
      return refuse(
          fmt::format("link {} of {} loses frames at random, which is not modelled", i + 1, links));
    }
    topology.connect(
        static_cast<uint32_t>(a), static_cast<uint32_t>(b),
        {.bits_per_s = *bits_per_s, .delay = std::llround(delay_ms * 1e6) * net::kNanosecond});
  }
  if (const auto problem = topology.problem()) return refuse(*problem);
  return topology;
}

Attempt<NetListing> parse_net_listing(const json& run, const net::Topology& topology) {
  if (!run.is_object() || !run.contains("config")) return refuse("has no config");
  Attempt<HpccConfig> config = parse_hpcc_config(run["config"]);
  if (!config) return refuse(fmt::format("its config {}", config.error().text));
  NetListing listing{.config = std::move(*config)};
  net::Parameters& p = listing.config.parameters;
  p.pfc.headroom_extra_bytes = static_cast<uint32_t>(
      std::clamp<int64_t>(integer(run, "headroom_extra_B"), 0, 1'000'000'000));
  p.acks_wait_with_data = integer(run, "switch_ack_high_prio") != 1;
  if (const Attempt<void> added = add_flows(run, topology, listing); !added) {
    return std::unexpected(added.error());
  }
  if (const Attempt<void> added = add_pfc(run, listing); !added) {
    return std::unexpected(added.error());
  }
  const auto totals = run.find("totals");
  if (totals == run.end() || !totals->is_object()) return refuse("has no totals");
  for (const auto& [name, value] : totals->items()) {
    if (value.is_number()) listing.totals.emplace_back(name, value.get<double>());
  }
  return listing;
}

}  // namespace cairn::plan
