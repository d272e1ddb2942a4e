// SPDX-License-Identifier: Apache-2.0
// `cairn up`: all of Cairn on one machine. Serves four drives from a data folder, which it makes at
// its first start with a configuration file that can be edited.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "apps/doctor/judge.h"
#include "apps/serve/run.h"
#include "base/words.h"
#include "config/files.h"
#include "server/common/reach.h"
#include "world/machine/backend.h"
#include "world/machine/facts.h"

namespace cairn::apps {

namespace {

constexpr int kDrives = 4;

// $XDG_DATA_HOME/cairn, or its usual value.
Attempt<std::string> default_folder() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return fmt::format("{}/cairn", data);
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fmt::format("{}/.local/share/cairn", home);
  return refuse("there is no HOME to keep drives in: name a folder with --data DIR");
}

Attempt<std::string> make_folder(const std::string& path) {
  std::error_code error;
  std::string whole = std::filesystem::absolute(path, error).lexically_normal().string();
  if (!error) std::filesystem::create_directories(whole, error);
  if (error) {
    return refuse(
        fmt::format("the data folder {} cannot be made ({}): name another with --data DIR",
                    in_quotes(path), error.message()));
  }
  return whole;
}

// Whether files there can bypass the page cache.
bool has_direct_access(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return fd >= 0 || error != EINVAL;
}

// Boxes of several machines must not be taken for one by a host that uses both.
Attempt<std::string> make_nqn() {
  const char* source = "/proc/sys/kernel/random/uuid";
  const std::optional<std::string> id = config::first_line(source);
  if (!id || id->size() < 13) {
    return refuse(
        fmt::format("{} gives no new name for the server: mount /proc, or write a "
                    "configuration and name it with --config FILE",
                    source));
  }
  return fmt::format("nqn.2026-11.io.cairn:up-{}", id->substr(0, 13));
}

std::string first_config(const std::string& folder, const std::string& nqn) {
  std::string text = fmt::format(
      "# What 'cairn up' serves. Made at its first start; edit it as you like (docs/box.md).\n\n"
      "[server]\nstate = '{}/state'\n\n[[listener]]\naddress = \"127.0.0.1:4420\"\n\n"
      "[[subsystem]]\nnqn = \"{}\"\n",
      folder, nqn);
  const char* more = has_direct_access(folder) ? "" : ",direct=off";
  for (int i = 1; i <= kDrives; ++i) {
    text +=
        fmt::format("\n[[subsystem.namespace]]\nnsid = {}\ndrive = 'file:{}/drive-{},size=1G{}'\n",
                    i, folder, i, more);
  }
  return text;
}

class UpCommand final : public Command {
 public:
  explicit UpCommand(CLI::App& app) {
    add_value(app, "--data DIR", "where drives and state are kept (~/.local/share/cairn)",
              [this](const std::string& text) -> Attempt<void> {
                data_ = text;
                return {};
              });
    add_settings(app, options_);
    set_examples(app, {"cairn up", "cairn up --data /srv/cairn --cores 0,1",
                       "cairn up --config cairn.toml"});
  }

  Attempt<int> run() override {
    server::ServerConfig config;
    const Attempt<config::Settings> settings = read(config);
    if (!settings) return std::unexpected(settings.error());
    const machine::Facts facts = machine::gather();
    const Attempt<machine::Backend> backend = machine::choose_backend(settings->io, facts.uring);
    if (!backend) return std::unexpected(backend.error());
    const doctor::Diagnosis diagnosis = doctor::judge(facts);
    const std::vector<std::string> nqns = nqns_of(config.server);
    return run_server(*settings, config, [&](const server::Server& server) {
      say(verdict(diagnosis, *backend));
      greet(server, nqns);
    });
  }

 private:
  // The settings and what to serve: from the file that was named, else from the data folder's.
  Attempt<config::Settings> read(server::ServerConfig& config) {
    Attempt<config::Settings> settings = config::resolve(
        options_, [&config](config::Section& root) { server::add_server_keys(root, config); });
    if (!settings || !config.server.subsystems.empty()) return settings;
    Attempt<std::string> folder = data_.empty() ? default_folder() : data_;
    if (folder) folder = make_folder(*folder);
    if (!folder) return std::unexpected(folder.error());
    folder_ = *folder;
    const std::string file = *folder + "/cairn.toml";
    if (const Attempt<void> made = make_config(*folder, file); !made) {
      return std::unexpected(made.error());
    }
    config::SettingsOptions options = options_;
    if (!options.config) {
      config = {};
      options.config = file;
      settings = config::resolve(
          options, [&config](config::Section& root) { server::add_server_keys(root, config); });
    } else {
      const server::ServerConfig said = std::exchange(config, {});
      const Attempt<config::Settings> more = config::resolve(
          {.config = file},
          [&config](config::Section& root) { server::add_server_keys(root, config); });
      if (!more) return more;
      if (!said.server.listeners.empty()) config.server.listeners = said.server.listeners;
      if (!said.state.empty()) config.state = said.state;
      if (!said.control.empty()) config.control = said.control;
      config.server.target = said.server.target;
      config.server.drain_timeout = said.server.drain_timeout;
    }
    for (server::ListenerOptions& each : config.server.listeners) each.or_any_port = true;
    return settings;
  }

  static Attempt<void> make_config(const std::string& folder, const std::string& file) {
    if (::access(file.c_str(), F_OK) == 0) return {};
    const Attempt<std::string> nqn = make_nqn();
    if (!nqn) return std::unexpected(nqn.error());
    return config::replace_file(file, first_config(folder, *nqn));
  }

  static std::string verdict(const doctor::Diagnosis& diagnosis, const machine::Backend& backend) {
    size_t worse = 0;
    for (const doctor::Check& check : diagnosis.checks) {
      worse += check.status != doctor::Status::kOk ? 1 : 0;
    }
    const std::string rest = worse == 0
                                 ? "nothing to mend"
                                 : fmt::format("{} of {} checks have advice: see 'cairn doctor'",
                                               worse, diagnosis.checks.size());
    return fmt::format("This machine: {} ({}); {}.\n", name(backend.io), backend.why, rest);
  }

  void greet(const server::Server& server, const std::vector<std::string>& nqns) const {
    const char* called_as = std::getenv("CAIRN_CALLED_AS");
    const std::string_view cairn = called_as != nullptr ? called_as : "cairn";
    if (!folder_.empty()) say(fmt::format("Drives and state are in {}\n", folder_));
    for (const env::Address& at : server.nvme().listening()) {
      const server::Reach near = server::reach(at);
      const std::string uri = fmt::format(
          "nvme-tcp://{}:{}",
          near.host.find(':') == near.host.npos ? near.host : "[" + near.host + "]", near.port);
      say(fmt::format("\nTo connect from this machine:\n  nvme discover -t tcp -a {} -s {}\n",
                      near.host, near.port));
      for (const std::string& nqn : nqns) {
        say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}\n", near.host, near.port, nqn));
        say(fmt::format("  {} nvme list {}/{}\n", cairn, uri, nqn));
        say(fmt::format("  {} nvme perf '{}/{}?nsid=1' --rw randread --bs 4K --depth 32\n", cairn,
                        uri, nqn));
      }
    }
    say(
        fmt::format("To change what is served:\n  {0} drive add mem:size=1G\n"
                    "  {0} drive status\n\n",
                    cairn));
    for (const env::Address& at : server.nvme().listening()) {
      for (const std::string& nqn : nqns) say(fmt::format("serving {} at {}\n", nqn, at.text()));
    }
  }

  config::SettingsOptions options_;
  std::string data_;
  std::string folder_;  // the one in use; empty when a file says what to serve
};

}  // namespace

std::unique_ptr<Command> make_up(CLI::App& app) { return std::make_unique<UpCommand>(app); }

}  // namespace cairn::apps
