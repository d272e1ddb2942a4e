// SPDX-License-Identifier: Apache-2.0
// `cairn drive serve`: drives for tools that speak NBD.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/command.h"
#include "apps/doctor/facts.h"
#include "apps/drive/serve.h"
#include "apps/duration.h"
#include "apps/key_file.h"
#include "apps/output.h"
#include "apps/words.h"
#include "apps/world.h"

namespace cairn::apps {

namespace {

// The path as it is from any folder.
std::string whole(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::absolute(path, error).lexically_normal();
  return error ? path : found.string();
}

Attempt<void> add_door(const std::string& text, std::vector<env::Address>& to) {
  Result<env::Address> address = env::Address::parse(text);
  if (!address) {
    return refuse(
        fmt::format("{} is no address: {}; write unix:/run/cairn.sock or "
                    "127.0.0.1:10809",
                    in_quotes(text), address.error().what()));
  }
  if (address->family == env::Address::Family::kLocal) address->path = whole(address->path);
  to.push_back(std::move(*address));
  return {};
}

task::Task<void> serve_in(env::Env& env, const DriveServeOptions& options, Attempt<void>& outcome) {
  outcome = co_await serve_drives(env, options);
}

class DriveServeCommand final : public Command {
 public:
  explicit DriveServeCommand(CLI::App& app) {
    add_values(app, "DRIVE",
               "[NAME=]mem:size=1G, file:PATH,size=8G or flash:profile=NAME,size=4G; several "
               "allowed",
               [this](const std::string& text) -> Attempt<void> {
                 Attempt<DriveWords> words = parse_drive_words(text);
                 if (!words) return std::unexpected(words.error());
                 options_.drives.push_back(std::move(*words));
                 return {};
               })
        ->expected(-1)
        ->required();
    add_values(app, "--nbd ADDRESS", "unix:SOCKET or ADDR:PORT, several allowed (127.0.0.1:10809)",
               [this](const std::string& text) { return add_door(text, options_.nbd); });
    add_switch(app, "--read-only", options_.read_only, "clients may not write");
    add_value(app, "--tls-psk FILE", "clients must come through TLS with a key of this file",
              [this](const std::string& text) -> Attempt<void> {
                key_file_ = whole(text);
                return {};
              });
    add_value(app, "--drain-timeout TIME", "at the end, for requests in flight (10s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                options_.drain_timeout = *time;
                return {};
              });
    add_settings(app, settings_);
    set_examples(app, {"cairn drive serve mem:size=1G --nbd unix:/tmp/cairn.sock",
                       "cairn drive serve boot=file:/srv/boot,size=8G data=mem:size=1G",
                       "cairn drive serve file:/srv/d0 --nbd 0.0.0.0:10809 --tls-psk keys.psk"});
  }

  Attempt<int> run() override {
    const Attempt<Settings> settings = resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    if (const Attempt<void> ready = prepare(*settings); !ready) {
      return std::unexpected(ready.error());
    }
    ::umask(0077);  // files and sockets are this user's alone
    Attempt<std::unique_ptr<env::World>> world = make_world(settings->io, world_options(*settings));
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return serve_in(env, options_, outcome); });
    for (const std::string& socket : sockets_) ::unlink(socket.c_str());
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }

 private:
  Attempt<void> prepare(const Settings& settings) {
    if (Attempt<void> checked = check_cores(settings.cores, doctor::gather_cpu()); !checked) {
      return checked;
    }
    if (Attempt<void> named = name_drives(options_.drives); !named) return named;
    if (options_.nbd.empty()) options_.nbd.push_back(env::Address::loopback(10809));
    if (!key_file_.empty()) {
      Attempt<door::NbdKeys> keys = read_psk_file(key_file_);
      if (!keys) return std::unexpected(keys.error());
      keys_.emplace(std::move(*keys));
      options_.keys = &*keys_;
    }
    options_.ready = [this](const std::vector<env::Address>& at) { greet(at); };
    return {};
  }

  void greet(const std::vector<env::Address>& listening) {
    const std::string user = keys_ ? keys_->names().front() : "";
    for (const env::Address& at : listening) {
      if (at.family == env::Address::Family::kLocal) sockets_.push_back(at.path);
      for (const DriveWords& drive : options_.drives) {
        const std::string uri = nbd_uri(at, drive.name, user);
        say(fmt::format("serving {} as {} at {}\n", drive.spec.text(), drive.name, at.text()));
        say(fmt::format("  nbdinfo '{}'\n", user.empty() ? uri : with_keys(uri)));
        if (user.empty()) {
          say(fmt::format("  qemu-system-x86_64 -drive file='{}',format=raw,if=virtio\n", uri));
        }
      }
    }
    say("Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  }
  std::string with_keys(const std::string& uri) const {
    const char joint = uri.find('?') == std::string::npos ? '?' : '&';
    return fmt::format("{}{}tls-psk-file={}", uri, joint, key_file_);
  }

  DriveServeOptions options_;
  std::string key_file_;
  std::optional<door::NbdKeys> keys_;
  std::vector<std::string> sockets_;
  SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_drive_serve(CLI::App& app) {
  return std::make_unique<DriveServeCommand>(app);
}

}  // namespace cairn::apps
