// SPDX-License-Identifier: Apache-2.0
// `cairn drive serve`: drives and stacks of them, for whatever speaks NBD or NVMe/TCP, and
// for virtual machines.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <utility>

#include "apps/box/run.h"
#include "apps/common/command.h"
#include "apps/common/log.h"
#include "apps/common/output.h"
#include "apps/drive/nvme_args.h"
#include "base/duration.h"
#include "base/words.h"
#include "drive/size_text.h"
#include "server/common/access_keys.h"
#include "server/common/reach.h"
#include "server/control/control_path.h"
#include "server/control/health_json.h"
#include "server/open/key_file.h"
#include "server/serve/server.h"
#include "world/machine/facts.h"
#include "world/machine/world.h"

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

task::Task<void> serve_in(env::Env& env, server::DriveServeOptions& options,
                          Attempt<void>& outcome) {
  outcome = co_await server::serve_drives(env, options);
}

class DriveServeCommand final : public Command {
 public:
  explicit DriveServeCommand(CLI::App& app) {
    options_.control_path = server::make_drive_control_path;
    add_values(
        app, "STACK",
        "[NAME=] and mem:size=1G, file:PATH,size=8G, nvme-tcp://HOST/NQN, or services over such; "
        "several allowed",
        [this](const std::string& text) {
          return take(server::parse_drive_args(text, server::LookUp::kWhenOpened));
        })
        ->expected(-1);
    add_values(app, "--file [NAME=]FILE", "a stack that the file holds as TOML; several allowed",
               [this](const std::string& text) {
                 return take(server::read_stack_file(text, server::LookUp::kWhenOpened));
               });
    add_values(app, "--nbd ADDRESS", "unix:SOCKET or ADDR:PORT, several allowed (127.0.0.1:10809)",
               [this](const std::string& text) { return add_door(text, options_.nbd); });
    add_values(app, "--nvme-tcp ADDRESS", "ADDR:PORT for NVMe hosts, several allowed",
               [this](const std::string& text) { return add_nvme_door(text, nvme_); });
    add_values(app, "--vfio-user [NAME=]SOCKET",
               "an NVMe controller for a virtual machine, several allowed; ,mode=polling or "
               "interrupt (adaptive)",
               [this](const std::string& text) { return take_vfio(text); });
    add_values(app, "--vhost-user [NAME=]SOCK[,mode=MODE]",
               "where a virtual machine finds the drive; MODE is interrupt, adaptive or polling "
               "(adaptive)",
               [this](const std::string& text) -> Attempt<void> {
                 Attempt<server::GuestSocket> socket = server::parse_guest_socket(text);
                 if (!socket) return std::unexpected(socket.error());
                 options_.vhost.push_back(std::move(*socket));
                 return {};
               })
        ->allow_extra_args(false);
    add_value(app, "--nqn NQN", "the subsystem of NVMe hosts (drives-NUMBER, made from the drives)",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<void> named = server::check_subsystem_nqn(text);
                if (named) nvme_.nqn = text;
                return named;
              });
    add_host_option(app, nvme_.access);
    add_tls_option(app, "--nvme-tcp", nvme_.access);
    add_switch(app, "--read-only", options_.read_only, "clients may not write");
    add_switch(app, "--format", format_,
               "layers may take drives that are not blank: what those hold is lost");
    add_value(app, "--tls-psk FILE", "NBD clients must come through TLS with a key of this file",
              [this](const std::string& text) -> Attempt<void> {
                key_file_ = whole(text);
                return {};
              });
    add_file(app, "--tls-cert FILE", certificate_files_.chain,
             "NBD clients must come through TLS; what is shown to them");
    add_values(app, "--tls-key FILE|HOSTNQN=FILE",
               "the key of --tls-cert; or that of an NVMe host, which may connect then",
               [this](const std::string& text) { return take_tls_key(text); });
    add_file(app, "--tls-ca FILE", certificate_files_.clients,
             "NBD clients must show a certificate that one of these has signed");
    add_integer(app, "--nbd-connections-max N", options_.nbd_connections_max,
                {.min = 1, .max = 1 << 20}, "NBD clients at a time (1024)");
    add_value(app, "--nbd-idle-timeout TIME",
              "idle for so long, an NBD client makes room when there is none (10m)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                options_.nbd_idle_timeout = *time;
                return {};
              });
    add_value(app, "--drain-timeout TIME", "at the end, for requests in flight (10s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                options_.drain_timeout = *time;
                return {};
              });
    add_value(app, "--control PATH",
              "the socket for 'cairn drive show' and 'edit', or off (one per process)",
              [this](const std::string& text) { return take_control(text); });
    add_settings(app, settings_);
    set_examples(app,
                 {"cairn drive serve mem:size=1G --nbd unix:/tmp/cairn.sock",
                  "cairn drive serve 'safe=mirror(file:/a,size=8G, file:/b,size=8G)'",
                  "cairn drive serve 'limit(file:/srv/d0, iops=500)' --nvme-tcp 127.0.0.1:4420",
                  ("cairn drive serve file:/srv/d0 --nvme-tcp 0.0.0.0:4420 --tls required "
                   "--tls-key HOSTNQN=host.key"),
                  "cairn drive serve file:/srv/d0 --nbd 0.0.0.0:10809 --tls-psk keys.psk",
                  "cairn drive serve 'vm=mirror(file:/a, file:/b)' --vhost-user /run/vm.sock",
                  "cairn drive serve mem:size=1G --vfio-user /run/vm.sock"});
  }

  Attempt<int> run() override {
    const Attempt<config::Settings> settings = config::resolve(
        settings_, [this](config::Section& root) { add_nvme_keys(root, options_); });
    if (!settings) return std::unexpected(settings.error());
    if (const Attempt<void> ready = prepare(*settings); !ready) {
      return std::unexpected(ready.error());
    }
    ::umask(0077);  // files and sockets are this user's alone
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(settings->io, config::world_options(*settings));
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
  Attempt<void> prepare(const config::Settings& settings) {
    if (Attempt<void> checked = machine::check_cores(settings.cores, machine::gather_cpu());
        !checked) {
      return checked;
    }
    if (options_.drives.empty()) {
      return refuse("there is nothing to serve: name a drive such as mem:size=1G, or a stack");
    }
    if (Attempt<void> named = server::name_drives(options_.drives); !named) return named;
    if (Attempt<void> taken = take_nvme_args(nvme_, options_); !taken) return taken;
    options_.read_key = server::read_key_file;
    options_.read_tls_key = server::read_tls_key_file;
    for (const server::DriveArgs& drive : options_.drives) {
      if (format_ && drive.stack != nullptr) drive.stack->allow_format();
    }
    if (Attempt<void> assigned = server::assign_sockets(options_.vhost, options_.drives);
        !assigned) {
      return assigned;
    }
    const bool has_guests = !options_.vfio.empty() || !options_.vhost.empty();
    if (options_.nbd.empty() && options_.nvme.empty() && !has_guests) {
      options_.nbd.push_back(env::Address::loopback(10809));
    }
    if (!key_file_.empty()) {
      Attempt<door::nbd::NbdKeys> keys = server::read_psk_file(key_file_);
      if (!keys) return std::unexpected(keys.error());
      keys_.emplace(std::move(*keys));
      options_.keys = &*keys_;
    }
    if (Attempt<void> taken = take_certificate(); !taken) return taken;
    options_.log = log_to_stderr(settings.log_level);
    options_.door_changed = [this](const std::string& socket, bool is_there) {
      std::erase(sockets_, socket);
      if (!is_there) ::unlink(socket.c_str());
      if (is_there) sockets_.push_back(socket);
    };
    options_.ready = [this](const server::DriveServer& server, const std::string& control) {
      if (!control.empty()) {
        sockets_.push_back(control);
        ::chmod(control.c_str(), 0600);
      }
      greet(server);
    };
    return {};
  }

  Attempt<void> take_control(const std::string& text) {
    if (text == "off") {
      options_.control_path = {};
      return {};
    }
    const Attempt<std::string> path = server::check_control_path(whole(text));
    if (!path) return std::unexpected(path.error());
    options_.control_path = [path = *path]() -> Attempt<std::string> { return path; };
    return {};
  }

  // Keys of hosts begin with their names, which are no files.
  Attempt<void> take_tls_key(const std::string& text) {
    if (text.starts_with("nqn.") && text.find('=') != std::string::npos) {
      return add_tls_host(text, nvme_.access);
    }
    certificate_files_.key = whole(text);
    return {};
  }

  Attempt<void> take_vfio(const std::string& text) {
    Attempt<server::VfioArgs> words = server::parse_vfio_args(text);
    if (!words) return std::unexpected(words.error());
    options_.vfio.push_back(std::move(*words));
    return {};
  }

  static void add_file(CLI::App& app, std::string_view spec, std::string& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      into = whole(text);
      return {};
    });
  }

  Attempt<void> take_certificate() {
    const server::CertificateFiles& files = certificate_files_;
    if (files.chain.empty() && files.key.empty() && files.clients.empty()) return {};
    if (files.chain.empty() || files.key.empty()) {
      return refuse("a certificate needs its key: give both, --tls-cert FILE and --tls-key FILE");
    }
    if (keys_) {
      return refuse("clients prove themselves in one way: leave out --tls-psk or --tls-cert");
    }
    Attempt<tls::Certificate> certificate = server::read_certificate(files);
    if (!certificate) return std::unexpected(certificate.error());
    certificate_.emplace(std::move(*certificate));
    options_.certificate = &*certificate_;
    return {};
  }

  Attempt<void> take(Attempt<server::DriveArgs> words) {
    if (!words) return std::unexpected(words.error());
    options_.drives.push_back(std::move(*words));
    return {};
  }

  void greet(const server::DriveServer& server) {
    const server::NbdWay way{.is_secure = keys_ || certificate_,
                             .user = keys_ ? keys_->names().front() : ""};
    for (const server::ServedDrive& drive : server.drives()) {
      if (drive.problem.empty()) continue;
      say(fmt::format("not serving {} as {}, which could not be opened: {}\n",
                      drive::with_size_texts(drive.text), drive.name,
                      server::last_line(drive.problem)));
    }
    for (const env::Address& at : server.nbd()) {
      if (at.family == env::Address::Family::kLocal) sockets_.push_back(at.path);
      for (const server::ServedDrive& drive : server.drives()) {
        if (!drive.problem.empty()) continue;
        const std::string uri = server::nbd_uri(at, drive.name, way);
        say(fmt::format("serving {} as {} at {}\n", drive::with_size_texts(drive.text), drive.name,
                        at.text()));
        say(fmt::format("  nbdinfo '{}'\n", way.is_secure ? with_credentials(uri) : uri));
        if (!way.is_secure) {
          say(fmt::format("  qemu-system-x86_64 -drive file='{}',format=raw,if=virtio\n", uri));
        }
      }
    }
    for (size_t door = 0; door < server.nvme().size(); ++door) {
      const env::Address& at = server.nvme()[door];
      const server::Reach near = server::reach(at);
      for (size_t i = 0; i < server.drives().size(); ++i) {
        const server::ServedDrive& drive = server.drives()[i];
        if (!drive.problem.empty()) continue;
        say(fmt::format("serving {} as namespace {} at {}\n", drive::with_size_texts(drive.text),
                        i + 1, at.text()));
      }
      say(fmt::format("  nvme connect -t tcp -a {} -s {} -n {}{}\n", near.host, near.port,
                      options_.nqn(), options_.nvme[door].tls ? " --tls" : ""));
    }
    for (const server::VfioController& controller : server.vfio()) {
      sockets_.push_back(controller.socket);
      say(fmt::format("serving {} as an NVMe controller at {}\n", comma_list(controller.drives),
                      controller.socket));
      if (controller.drives.size() == 1) {
        say(fmt::format("  qemu-system-x86_64 $(cairn drive qemu-args {}) ...\n",
                        controller.drives.front()));
      } else {
        say(fmt::format("  qemu-system-x86_64 -device '{}' ... (with shared memory)\n",
                        server::vfio_qemu_device(controller.socket)));
      }
    }
    for (const server::GuestSocket& socket : options_.vhost) {
      sockets_.push_back(socket.at.path);
      say(
          fmt::format("serving {0} to a virtual machine at {1}\n"
                      "  qemu-system-x86_64 $(cairn drive qemu-args {0}) ...\n",
                      socket.drive, socket.at.path));
    }
    say("Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  }
  // A client finds ca-cert.pem, and if it must show one its own certificate, in a folder.
  std::string with_credentials(const std::string& uri) const {
    const char joint = uri.find('?') == std::string::npos ? '?' : '&';
    if (!keys_) return fmt::format("{}{}tls-certificates=FOLDER", uri, joint);
    return fmt::format("{}{}tls-psk-file={}", uri, joint, key_file_);
  }

  server::DriveServeOptions options_;
  NvmeArgs nvme_;
  bool format_ = false;
  std::string key_file_;
  std::optional<door::nbd::NbdKeys> keys_;
  server::CertificateFiles certificate_files_;
  std::optional<tls::Certificate> certificate_;
  std::vector<std::string> sockets_;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_drive_serve(CLI::App& app) {
  return std::make_unique<DriveServeCommand>(app);
}

}  // namespace cairn::apps
