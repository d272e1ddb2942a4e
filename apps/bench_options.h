// SPDX-License-Identifier: Apache-2.0
// Options that all benchmarks have.
#pragma once

#include <string>
#include <vector>

#include "apps/problem.h"

namespace CLI {
class App;
}

namespace cairn::apps {

struct CorePair {
  int server = 0;
  int client = 1;
};

// --cores SERVER,CLIENT.
void add_core_pair(CLI::App& app, CorePair& into);
// Whether this machine has them.
Attempt<void> check_core_pair(const CorePair& cores);
// --only NAME, one of `choices`.
void add_only(CLI::App& app, std::vector<std::string>& into, std::vector<std::string> choices);

}  // namespace cairn::apps
