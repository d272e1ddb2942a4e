// SPDX-License-Identifier: Apache-2.0
// The network model against one run of the reference whose flows are listed.
#pragma once

#include <string>
#include <vector>

#include "model/net/topology.h"
#include "plan/common/comparison.h"
#include "plan/net/net_listing.h"

namespace cairn::plan {

// Runs it and compares every flow, every PAUSE frame and every total. All are exact: a mean that
// the reference rounded is compared as rounded.
std::vector<Comparison> check_net_listing(const std::string& file, const std::string& name,
                                          const NetListing& listing, const net::Topology& topology);

}  // namespace cairn::plan
