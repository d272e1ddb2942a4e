// SPDX-License-Identifier: Apache-2.0
// Loads that networks are tried with. Tags count from 0 in the order of the flows.
#pragma once

#include <cstdint>
#include <vector>

#include "model/net/flow.h"

namespace cairn::net {

// Hosts from 1 on send to host 0, all at once.
std::vector<Flow> incast(uint32_t hosts, uint64_t bytes, Picos start);

// Every host sends to one other and receives from one: a circle through all of them in an order
// drawn from the seed.
std::vector<Flow> permutation(uint32_t hosts, uint64_t bytes, Picos start, uint64_t seed);

}  // namespace cairn::net
