// SPDX-License-Identifier: Apache-2.0
#include "apps/box_run.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "apps/box/control_place.h"
#include "apps/box/serve.h"
#include "apps/box/shelf_files.h"
#include "apps/box/state_folder.h"
#include "apps/doctor/facts.h"
#include "apps/drive/health_json.h"
#include "apps/key_file.h"
#include "apps/log.h"
#include "apps/output.h"
#include "apps/rack/store.h"
#include "apps/world.h"

namespace cairn::apps {

namespace {

task::Task<void> serve_in(env::Env& env, const ServeOptions& options, Attempt<void>& outcome) {
  outcome = co_await serve_box(env, options);
}

std::function<Attempt<std::string>(uint16_t)> control_path(const std::string& wanted) {
  if (wanted == "off") return {};
  if (wanted.empty()) return make_control_path;
  return [wanted](uint16_t) -> Attempt<std::string> { return wanted; };
}

}  // namespace

Attempt<int> run_box(const Settings& settings, const BoxConfig& config,
                     std::function<void(const Box&)> greet) {
  if (const Attempt<void> checked = check_cores(settings.cores, doctor::gather_cpu()); !checked) {
    return std::unexpected(checked.error());
  }
  ::umask(0077);  // drives, sockets and state are this user's alone
  std::optional<StateFolder> state;
  ServeOptions options{.box = config.box};
  options.hooks.log = log_to_stderr(settings.log_level);
  options.hooks.read_key = read_key_file;
  options.hooks.read_tls_key = read_tls_key_file;
  options.rack = config.rack;
  for (RackShelf& shelf : options.rack.shelves) {
    if (!shelf.folder.empty()) shelf.folder = std::filesystem::absolute(shelf.folder).string();
  }
  options.rack_hooks = {
      .open_store = [](env::Env& env, StoreUri uri) { return open_store(env, std::move(uri)); },
      .log = options.hooks.log,
      .remove_file = remove_shelf_file,
      .sweep = sweep_shelf};
  if (!config.state.empty()) {
    Attempt<StateFolder> opened = StateFolder::open(config.state);
    if (!opened) return std::unexpected(opened.error());
    state.emplace(std::move(*opened));
    Attempt<BoxChanges> changes = state->load();
    if (!changes) return std::unexpected(changes.error());
    options.changes = std::move(*changes);
    options.box.reservations = state->path();
    options.hooks.keep = [&state](const BoxChanges& all) { return state->save(all); };
  }
  std::string socket;
  options.control_path = control_path(config.control);
  options.ready = [&](const Box& box, const std::string& control) {
    socket = control;
    greet(box);
    for (const Box::NotServed& each : box.not_served()) {
      say(fmt::format("not serving namespace {} of {}, whose drive could not be opened: {}\n",
                      each.options.nsid, each.nqn, last_line(each.problem)));
    }
    say("Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  };
  Attempt<std::unique_ptr<env::World>> world = make_world(settings.io, world_options(settings));
  if (!world) return std::unexpected(world.error());
  Attempt<void> outcome;
  const Result<void> ran =
      (*world)->run([&](env::Env& env) { return serve_in(env, options, outcome); });
  if (!socket.empty()) ::unlink(socket.c_str());
  if (!ran) return refuse(ran.error().text());
  if (!outcome) return std::unexpected(outcome.error());
  return kExitOk;
}

Reach reach(const env::Address& at) {
  env::Address near = at;
  if (std::ranges::all_of(at.ip, [](uint8_t byte) { return byte == 0; })) {
    near = env::Address::loopback(at.port);
    if (at.family == env::Address::Family::kIp6) {
      near = at;
      near.ip[15] = 1;
    }
  }
  std::string host = near.text();
  host.resize(host.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return {.host = std::move(host), .port = fmt::format("{}", at.port)};
}

std::vector<std::string> nqns_of(const BoxOptions& options) {
  std::vector<std::string> names;
  names.reserve(options.subsystems.size());
  for (const BoxSubsystem& each : options.subsystems) names.push_back(each.options.nqn);
  return names;
}

}  // namespace cairn::apps
