// SPDX-License-Identifier: Apache-2.0
// A run of the HPCC reference that lists its flows and what came of each: our model has to do the
// same to the nanosecond.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "model/net/counters.h"
#include "model/net/flow.h"
#include "model/net/topology.h"
#include "plan/net/hpcc_config.h"

namespace cairn::plan {

struct NetListing {
  HpccConfig config;
  std::vector<net::Flow> flows;  // by their places in the list, which are their tags
  std::vector<std::optional<net::Picos>>
      times;  // from a flow's start to its end; nothing: it has none
  std::vector<std::pair<std::string, double>> totals;  // those that the model has as well
  std::optional<std::vector<net::PfcFrame>> pfc;  // each PAUSE and RESUME frame, in order of time
};

// The reference's own description of a network: a line with the numbers of nodes, switches and
// links, one with the switches' numbers, then a line per link: two nodes, rate, delay, error rate.
// Nodes keep their numbers.
Attempt<net::Topology> parse_hpcc_topology(std::string_view text);

// Refuses what the model cannot do, and flows between nodes that are no hosts of `topology`.
Attempt<NetListing> parse_net_listing(const nlohmann::json& run, const net::Topology& topology);

}  // namespace cairn::plan
