// SPDX-License-Identifier: Apache-2.0
// Options that all benchmarks have.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/problem.h"
#include "bench/world_load.h"
#include "config/settings.h"

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
bench::WorldFactory world_factory(config::IoChoice io);

// Where a host and a box are measured, and how they talk to the kernel: --cores and --io.
struct HostAndBox {
  CorePair cores;
  std::optional<config::IoChoice> io;
};
void add_host_and_box(CLI::App& app, HostAndBox& into);
// Whether this machine can do so; how to make their worlds.
Attempt<bench::WorldFactory> check_host_and_box(const HostAndBox& where);
// Tells a benchmark's options.
template <class Options>
Attempt<void> put_host_and_box(const HostAndBox& where, Options& options) {
  Attempt<bench::WorldFactory> world = check_host_and_box(where);
  if (!world) return std::unexpected(world.error());
  options.world = std::move(*world);
  options.box_cpu = where.cores.server;
  options.host_cpu = where.cores.client;
  options.progress = progress_on_terminal();
  return {};
}

// A benchmark ended with an error.
std::unexpected<Problem> bench_stopped(const Error& error);
// --only NAME, of `choices`, several allowed.
void add_only(CLI::App& app, std::vector<std::string>& into, std::vector<std::string> choices);
// The same by another name.
void add_choices(CLI::App& app, const char* option, std::vector<std::string>& into,
                 std::vector<std::string> choices, std::string_view help);

}  // namespace cairn::apps
