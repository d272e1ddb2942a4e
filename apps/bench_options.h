// SPDX-License-Identifier: Apache-2.0
// Options that all benchmarks have.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/problem.h"
#include "apps/settings.h"
#include "base/error.h"
#include "bench/world_load.h"

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
// Tells a person at the terminal what is about to run; empty when nobody watches.
std::function<void(std::string_view)> progress_on_terminal();
// Makes worlds as `io` says, which choose_backend() has accepted.
bench::WorldFactory world_factory(IoChoice io);
// A benchmark ended with an error.
std::unexpected<Problem> bench_stopped(const Error& error);
// --only NAME, one of `choices`.
void add_only(CLI::App& app, std::vector<std::string>& into, std::vector<std::string> choices);

}  // namespace cairn::apps
