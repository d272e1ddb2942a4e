// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "apps/common/command.h"
#include "base/words.h"
#include "config/files.h"
#include "world/machine/backend.h"
#include "world/machine/facts.h"
#include "world/machine/world.h"

namespace cairn::apps {

void add_core_pair(CLI::App& app, CorePair& into) {
  add_value(app, "--cores SERVER,CLIENT", "the two CPUs to pin to (0,1)",
            [&into](const std::string& text) -> Attempt<void> {
              const Attempt<std::vector<int>> cores = config::parse_cores(text);
              if (!cores) return std::unexpected(cores.error());
              if (cores->size() != 2) {
                return refuse(fmt::format("takes two CPUs such as 0,1, not {}", in_quotes(text)));
              }
              into = {.server = (*cores)[0], .client = (*cores)[1]};
              return {};
            });
}

Attempt<void> check_core_pair(const CorePair& cores) {
  const int both[] = {cores.server, cores.client};
  return machine::check_cores(both, machine::gather_cpu());
}

std::function<void(std::string_view)> progress_on_terminal() {
  if (::isatty(STDERR_FILENO) != 1) return {};
  return [](std::string_view what) { fmt::print(stderr, "{}\n", what); };
}

bench::WorldFactory world_factory(config::IoChoice io) {
  return [io](const env::WorldOptions& options) {
    return std::move(*machine::make_world(io, options));
  };
}

void add_host_and_box(CLI::App& app, HostAndBox& into) {
  add_core_pair(app, into.cores);
  add_io(app, into.io);
}

Attempt<bench::WorldFactory> check_host_and_box(const HostAndBox& where) {
  if (const Attempt<void> checked = check_core_pair(where.cores); !checked) {
    return std::unexpected(checked.error());
  }
  const config::IoChoice io = where.io.value_or(config::IoChoice::kAuto);
  if (const Attempt<machine::Backend> backend =
          machine::choose_backend(io, machine::gather_uring());
      !backend) {
    return std::unexpected(backend.error());
  }
  return world_factory(io);
}

std::unexpected<Problem> bench_stopped(const Error& error) {
  return refuse(
      fmt::format("the benchmark stopped ({}): see what 'cairn doctor' says", error.text()));
}

void add_only(CLI::App& app, std::vector<std::string>& into, std::vector<std::string> choices) {
  add_choices(app, "--only NAME", into, std::move(choices), "measure just this");
}

void add_choices(CLI::App& app, const char* option, std::vector<std::string>& into,
                 std::vector<std::string> choices, std::string_view help) {
  add_values(app, option, fmt::format("{}, several allowed: {}", help, comma_list(choices)),
             [&into, choices = std::move(choices)](const std::string& name) -> Attempt<void> {
               if (std::ranges::find(choices, name) == choices.end()) {
                 return refuse(fmt::format("{} is not one of {}{}", in_quotes(name),
                                           comma_list(choices), did_you_mean(name, choices)));
               }
               into.push_back(name);
               return {};
             });
}

}  // namespace cairn::apps
