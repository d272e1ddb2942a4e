// SPDX-License-Identifier: Apache-2.0
#include "apps/box/run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "apps/common/log.h"
#include "apps/common/output.h"
#include "server/config/shelf_files.h"
#include "server/config/state_folder.h"
#include "server/control/control_path.h"
#include "server/control/health_json.h"
#include "server/open/key_file.h"
#include "server/open/store.h"
#include "server/serve/serve_box.h"
#include "world/machine/facts.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

task::Task<void> serve_in(env::Env& env, const server::ServeOptions& options,
                          Attempt<void>& outcome) {
  outcome = co_await server::serve_box(env, options);
}

std::function<Attempt<std::string>(uint16_t)> control_path(const std::string& wanted) {
  if (wanted == "off") return {};
  if (wanted.empty()) return server::make_control_path;
  return [wanted](uint16_t) -> Attempt<std::string> { return wanted; };
}

}  // namespace

Attempt<int> run_box(const config::Settings& settings, const server::BoxConfig& config,
                     std::function<void(const server::Box&)> greet) {
  if (const Attempt<void> checked = machine::check_cores(settings.cores, machine::gather_cpu());
      !checked) {
    return std::unexpected(checked.error());
  }
  ::umask(0077);  // drives, sockets and state are this user's alone
  std::optional<server::StateFolder> state;
  server::ServeOptions options{.box = config.box};
  options.hooks.log = log_to_stderr(settings.log_level);
  options.hooks.read_key = server::read_key_file;
  options.hooks.read_tls_key = server::read_tls_key_file;
  options.rack = config.rack;
  for (server::RackShelf& shelf : options.rack.shelves) {
    if (!shelf.folder.empty()) shelf.folder = std::filesystem::absolute(shelf.folder).string();
  }
  options.rack_hooks = {
      .open_store = [](env::Env& env,
                       server::StoreUri uri) { return server::open_store(env, std::move(uri)); },
      .log = options.hooks.log,
      .remove_file = server::remove_shelf_file,
      .sweep = server::sweep_shelf};
  if (!config.state.empty()) {
    Attempt<server::StateFolder> opened = server::StateFolder::open(config.state);
    if (!opened) return std::unexpected(opened.error());
    state.emplace(std::move(*opened));
    Attempt<server::BoxChanges> changes = state->load();
    if (!changes) return std::unexpected(changes.error());
    options.changes = std::move(*changes);
    options.box.reservations = state->path();
    options.hooks.keep = [&state](const server::BoxChanges& all) { return state->save(all); };
  }
  std::string socket;
  options.control_path = control_path(config.control);
  options.ready = [&](const server::Box& box, const std::string& control) {
    socket = control;
    greet(box);
    for (const server::Box::NotServed& each : box.not_served()) {
      say(fmt::format("not serving namespace {} of {}, whose drive could not be opened: {}\n",
                      each.options.nsid, each.nqn, server::last_line(each.problem)));
    }
    say("Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  };
  Attempt<std::unique_ptr<env::World>> world =
      machine::make_world(settings.io, config::world_options(settings));
  if (!world) return std::unexpected(world.error());
  Attempt<void> outcome;
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return serve_in(env, options, outcome); });
  if (!socket.empty()) ::unlink(socket.c_str());
  if (!ran) return refuse(ran.error().text());
  if (!outcome) return std::unexpected(outcome.error());
  return kExitOk;
}

std::vector<std::string> nqns_of(const server::BoxOptions& options) {
  std::vector<std::string> names;
  names.reserve(options.subsystems.size());
  for (const server::BoxSubsystem& each : options.subsystems) names.push_back(each.options.nqn);
  return names;
}

}  // namespace cairn::apps
