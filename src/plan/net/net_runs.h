// SPDX-License-Identifier: Apache-2.0
// The networks and flows of the HPCC reference's runs, by their names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/problem.h"
#include "model/net/flow.h"
#include "model/net/topology.h"

namespace cairn::plan {

struct NetRun {
  net::Topology topology;
  std::vector<net::Flow> flows;  // in the order they are started
  bool drawn = false;            // not the reference's own flows, but some like them
};

// `p2p_…`, `incast<senders>_…` and `clos256_…`. `listed` is fct_per_flow.json: flows it has are
// taken from it. Those it lacks are worked out (senders of an incast) or drawn from the seed: a
// permutation, or Poisson arrivals with the means of the SNIS paper's Table II.
Attempt<NetRun> net_run(const std::string& name, uint32_t flows, const nlohmann::json& listed,
                        uint32_t seed);

}  // namespace cairn::plan
