// SPDX-License-Identifier: Apache-2.0
// `cairn box`: drives served over NVMe/TCP.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/box/access_args.h"
#include "apps/box/run.h"
#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/duration.h"
#include "base/words.h"
#include "server/common/default_nqn.h"
#include "server/common/reach.h"
#include "server/control/control_path.h"
#include "server/open/take_drive.h"

namespace cairn::apps {

namespace {

Attempt<void> add_address(const std::string& text, std::vector<env::Address>& to) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(fmt::format("{} is no address: {}; write 127.0.0.1:4420 or [::]:4420",
                              in_quotes(text), address.error().what()));
  }
  to.push_back(std::move(*address));
  return {};
}

// What was said on the command line; it wins over the file.
struct BoxArgs {
  std::vector<env::Address> listen;
  std::vector<env::Address> advertise;
  std::string nqn;
  std::vector<nvme::NamespaceOptions> drives;
  AccessArgs access;
  std::string state;
  std::string control;
  std::optional<Duration> drain_timeout;
  bool format = false;
  std::optional<server::StoreUri> rack;
  std::string rack_name;
  std::vector<server::RackShelf> shelves;
};

// The subsystem that --drive and --host are about: the one named, or the only one; made if the file
// has none.
Attempt<server::BoxSubsystem*> subsystem_for(const BoxArgs& words, const std::string& state,
                                             server::BoxOptions& box) {
  for (server::BoxSubsystem& each : box.subsystems) {
    if (each.options.nqn == words.nqn) return &each;
  }
  if (words.nqn.empty() && box.subsystems.size() == 1) return &box.subsystems.front();
  if (words.nqn.empty() && box.subsystems.size() > 1) {
    return refuse(
        fmt::format("the file has several subsystems: say with --nqn which one --drive "
                    "and --host are for ({})",
                    comma_list(nqns_of(box))));
  }
  Attempt<std::string> nqn = words.nqn;
  if (words.nqn.empty()) nqn = server::make_default_nqn("box", state, words.drives);
  if (!nqn) return std::unexpected(nqn.error());
  server::BoxSubsystem& made = box.subsystems.emplace_back();
  made.options.nqn = std::move(*nqn);
  return &made;
}

Attempt<void> merge_listeners(const BoxArgs& words, server::BoxOptions& box) {
  if (words.advertise.size() > words.listen.size()) {
    return refuse("--advertise goes with a --listen each: give as many of both, in the same order");
  }
  if (!words.listen.empty()) box.listeners.clear();
  for (size_t i = 0; i < words.listen.size(); ++i) {
    server::BoxListener& listener =
        box.listeners.emplace_back(server::BoxListener{.address = words.listen[i]});
    if (i < words.advertise.size()) listener.advertise = words.advertise[i];
  }
  if (box.listeners.empty()) box.listeners.push_back({.address = env::Address::loopback(4420)});
  return take_tls_args(words.access, "--listen", box.listeners);
}

// Space is only given away where what was promised is kept.
Attempt<void> merge_rack(const BoxArgs& words, server::BoxConfig& config) {
  server::RackOptions& rack = config.rack;
  if (words.rack) rack.store = *words.rack;
  if (!words.rack_name.empty()) rack.name = words.rack_name;
  if (!words.shelves.empty()) rack.shelves = words.shelves;
  for (server::RackShelf& shelf : rack.shelves) {
    if (shelf.subsystem.empty()) shelf.subsystem = words.nqn;
  }
  const bool has_store = !rack.store.servers.empty() || !rack.store.folder.empty();
  if (rack.shelves.empty() && has_store) {
    return refuse("a box in a rack needs a shelf to offer: --shelf d0=file:FOLDER,size=100G");
  }
  if (!rack.shelves.empty() && !has_store) {
    return refuse(
        fmt::format("a shelf is offered in a rack: say where its metadata is with --rack "
                    "{}, or with store in [rack]",
                    server::kDefaultStore));
  }
  if (!rack.shelves.empty() && config.state.empty()) {
    return refuse(
        "a box that gives space away must remember to whom: name a folder with --state DIR");
  }
  return {};
}

Attempt<void> merge(const BoxArgs& words, server::BoxConfig& config) {
  if (Attempt<void> merged = merge_listeners(words, config.box); !merged) return merged;
  if (!words.state.empty()) config.state = words.state;
  const bool has_words = !words.drives.empty() || !words.nqn.empty() || words.access.has_hosts();
  if (has_words || config.box.subsystems.empty()) {
    const Attempt<server::BoxSubsystem*> subsystem = subsystem_for(words, config.state, config.box);
    if (!subsystem) return std::unexpected(subsystem.error());
    auto& namespaces = (*subsystem)->namespaces;
    namespaces.insert(namespaces.end(), words.drives.begin(), words.drives.end());
    take_host_args(words.access, **subsystem);
  }
  if (!words.control.empty()) config.control = words.control;
  config.box.format = words.format;
  if (words.drain_timeout) config.box.drain_timeout = *words.drain_timeout;
  if (Attempt<void> merged = merge_rack(words, config); !merged) return merged;
  const bool has_drives = std::ranges::any_of(
      config.box.subsystems,
      [](const server::BoxSubsystem& each) { return !each.namespaces.empty(); });
  if (!has_drives && config.state.empty()) {
    return refuse("a box needs a drive: add --drive mem:size=1G or --drive file:PATH,size=8G");
  }
  return {};
}

class BoxCommand final : public Command {
 public:
  explicit BoxCommand(CLI::App& app) {
    add_values(app, "--listen ADDRESS", "where hosts connect, several allowed (127.0.0.1:4420)",
               [this](const std::string& text) { return add_address(text, words_.listen); });
    add_values(app, "--advertise ADDRESS", "what discovery tells hosts instead, one per --listen",
               [this](const std::string& text) { return add_address(text, words_.advertise); });
    add_text(app, "--nqn NQN", words_.nqn, "name of the subsystem");
    add_values(app, "--drive STACK",
               "mem:size=1G, file:PATH,size=8G, flash:profile=NAME,size=4G, or services over such; "
               "several allowed",
               [this](const std::string& text) {
                 return server::take_drive(text, server::LookUp::kWhenOpened,
                                           words_.drives.emplace_back());
               });
    add_host_option(app, words_.access);
    add_tls_option(app, "--listen", words_.access);
    add_values(app, "--tls-key HOSTNQN=FILE", kTlsKeyHelp,
               [this](const std::string& text) { return add_tls_host(text, words_.access); });
    add_switch(app, "--format", words_.format,
               "layers of --drive may take drives that are not blank: what those hold is lost");
    add_text(app, "--state DIR", words_.state, "keep live changes and reservations here");
    add_value(app, "--control PATH", "the control socket, or off (made from the first port)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<std::string> checked = server::check_control_path(text);
                if (!checked) return std::unexpected(checked.error());
                words_.control = text;
                return {};
              });
    add_value(app, "--drain-timeout TIME", "at the end, for commands in flight (10s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                words_.drain_timeout = *time;
                return {};
              });
    add_value(app, "--rack META",
              "offer shelves in the rack whose metadata is at meta://ADDR:PORT, etcd://ADDR:PORT "
              "or rocks:FOLDER",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<server::StoreUri> uri = server::StoreUri::parse(text);
                if (!uri) return std::unexpected(uri.error());
                words_.rack = std::move(*uri);
                return {};
              });
    add_value(app, "--rack-name NAME", "what the rack calls this box (where it is reached)",
              [this](const std::string& text) -> Attempt<void> {
                if (const Result<void> named = rack::check_box_name(text); !named) {
                  return refuse(named.error().what());
                }
                words_.rack_name = text;
                return {};
              });
    add_values(app, "--shelf NAME=SPACE",
               "space to give away: mem:size=8G or file:FOLDER,size=100G; iops=N and "
               "bandwidth=SIZE may follow; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 Attempt<server::RackShelf> shelf = server::parse_shelf(text);
                 if (!shelf) return std::unexpected(shelf.error());
                 const auto same = [&shelf](const server::RackShelf& each) {
                   return each.name == shelf->name;
                 };
                 if (std::ranges::any_of(words_.shelves, same)) {
                   return refuse(fmt::format("shelf {} is there twice", shelf->name));
                 }
                 words_.shelves.push_back(std::move(*shelf));
                 return {};
               });
    add_settings(app, settings_);
    set_examples(app, {"cairn box --drive mem:size=1G",
                       "cairn box --listen 0.0.0.0:4420 --drive file:/srv/d0,size=8G --cores 0,1",
                       "cairn box --drive mem:size=1G --tls required --tls-key HOSTNQN=host.key",
                       "cairn box --config box.toml"});
  }

  Attempt<int> run() override {
    server::BoxConfig config;
    const Attempt<config::Settings> settings = config::resolve(
        settings_, [&config](config::Section& root) { server::add_box_keys(root, config); });
    if (!settings) return std::unexpected(settings.error());
    if (const Attempt<void> merged = merge(words_, config); !merged) {
      return std::unexpected(merged.error());
    }
    return run_box(*settings, config,
                   [&config](const server::Box& box) { greet(box, config.box); });
  }

 private:
  static void add_text(CLI::App& app, std::string_view spec, std::string& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      into = text;
      return {};
    });
  }

  static void greet(const server::Box& box, const server::BoxOptions& options) {
    for (size_t i = 0; i < box.listening().size(); ++i) {
      const env::Address& at = box.listening()[i];
      const server::Reach near = server::reach(at);
      const char* more = options.listeners[i].tls ? " --tls" : "";
      for (const std::string& nqn : nqns_of(options)) {
        say(fmt::format("serving {} at {}\n", nqn, at.text()));
        say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}{}\n", near.host, near.port, nqn,
                        more));
      }
    }
  }

  BoxArgs words_;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_box(CLI::App& app) { return std::make_unique<BoxCommand>(app); }

}  // namespace cairn::apps
