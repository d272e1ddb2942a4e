// SPDX-License-Identifier: Apache-2.0
// Where a process can be looked at over HTTP, as its command line says it.
#pragma once

#include <string>
#include <vector>

#include "apps/common/command.h"
#include "env/address.h"

namespace cairn::apps {

// --http ADDRESS.
void add_http(CLI::App& app, std::vector<env::Address>& into);

// Prints a line to paste for each. `sockets` gets the local ones, to be removed at the end.
void greet_http(const std::vector<env::Address>& addresses, std::vector<std::string>& sockets);

}  // namespace cairn::apps
