// SPDX-License-Identifier: Apache-2.0
// Networks by name or from TOML files: hosts, switches, and links with rate and delay.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"
#include "model/net/topology.h"

namespace cairn::plan {

// Text like
//
//     hosts = ["a", "b"]
//     switches = ["s"]
//     link = [{between = ["a", "s"], rate = "10 Gb/s", delay = "1 us"},
//             {between = ["b", "s"], rate = "10 Gb/s", delay = "1 us"}]
//
// Any bytes are accepted or refused; the Problem names line, column and key.
Attempt<net::Topology> parse_topology(std::string_view text);

// A built-in network ("star:10", "leaf-spine:4x16x4", "clos256"), or the path of a file.
Attempt<net::Topology> load_topology(const std::string& name_or_path);

}  // namespace cairn::plan
