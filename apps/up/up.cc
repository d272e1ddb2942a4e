// SPDX-License-Identifier: Apache-2.0
// `cairn up`: all of Cairn on one machine, in one process and one folder.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/confirm.h"
#include "apps/common/control.h"
#include "apps/common/http.h"
#include "apps/common/log.h"
#include "apps/common/output.h"
#include "apps/doctor/judge.h"
#include "apps/kv/door_args.h"
#include "apps/up/client.h"
#include "apps/up/commands.h"
#include "base/words.h"
#include "report/build_info.h"
#include "server/common/reach.h"
#include "server/common/run_folder.h"
#include "server/config/keys.h"
#include "server/config/state_folder.h"
#include "server/control/control_path.h"
#include "server/open/arbiter_uri.h"
#include "server/serve/doors.h"
#include "server/up/up.h"
#include "world/machine/backend.h"
#include "world/machine/facts.h"
#include "world/machine/world.h"
#include "world/posix/holder.h"

namespace cairn::apps {

namespace {

using server::Json;

constexpr uint16_t kNbdPort = 10809;
constexpr uint16_t kNvmePort = 4420;
constexpr uint16_t kHttpPort = 9640;

class UpCommand final : public Command {
 public:
  explicit UpCommand(CLI::App& app) : confirmation_(app) {
    add_text(app, "--data DIR", data_, "where everything is kept (~/.local/share/cairn)");
    add_size(app, "--size SIZE", drive_bytes_, "of each of the four drives, which are sparse (4G)");
    add_door(app, "--nbd ADDRESS", nbd_,
             "another place for NBD clients (a socket in DIR, and 127.0.0.1:10809)");
    add_door(app, "--nvme-tcp ADDRESS", nvme_, "for NVMe hosts (127.0.0.1:4420)");
    add_door(app, "--resp ADDRESS", resp_, "for clients of Redis (127.0.0.1:6390)");
    add_http(app, http_, http_token_);
    add_on_event(app, on_event_);
    add_switch(app, "--reset", reset_, "lose all that the folder holds, and begin anew");
    add_settings(app, settings_);
    set_examples(app, {"cairn up", "cairn up --data /srv/cairn --size 100G", "cairn up --reset"});
  }

  Attempt<int> run() override {
    server::ServerConfig config;
    const Attempt<config::Settings> settings = config::resolve(
        settings_, [&config](config::Section& root) { server::add_server_keys(root, config); });
    if (!settings) return std::unexpected(settings.error());
    if (!config.server.subsystems.empty() || !config.server.listeners.empty()) {
      return refuse(
          "'cairn up' takes [runtime] and [log] of a file, and serves what it always does: 'cairn "
          "serve --config FILE' serves what a file says");
    }
    if (const Attempt<void> checked = machine::check_cores(settings->cores, machine::gather_cpu());
        !checked) {
      return std::unexpected(checked.error());
    }
    const machine::Facts facts = machine::gather();
    const Attempt<machine::Backend> backend = machine::choose_backend(settings->io, facts.uring);
    if (!backend) return std::unexpected(backend.error());
    if (const Attempt<void> safe = check_reach(); !safe) return std::unexpected(safe.error());
    ::umask(0077);  // drives, sockets and state are this user's alone
    const Attempt<std::string> path = data_.empty() ? default_up_folder() : data_;
    if (!path) return std::unexpected(path.error());
    if (const Attempt<void> size = check_size(); !size) return std::unexpected(size.error());
    if (reset_) {
      const Attempt<void> reset = lose_all(*path);
      if (!reset) return std::unexpected(reset.error());
    }
    Attempt<server::UpFolder> folder = server::UpFolder::open(*path, drive_bytes_);
    if (!folder) return std::unexpected(folder.error());
    say(verdict(doctor::judge(facts), *backend));
    return serve(*settings, *folder);
  }

 private:
  static void add_door(CLI::App& app, std::string_view spec, std::vector<env::Address>& to,
                       std::string help) {
    add_values(app, spec, std::move(help), [&to](const std::string& text) -> Attempt<void> {
      Attempt<env::Address> at = parse_door_address(text);
      if (!at) return std::unexpected(at.error());
      to.push_back(std::move(*at));
      return {};
    });
  }

  Attempt<void> check_size() const {
    if (drive_bytes_ == 0 ||
        (drive_bytes_ >= server::kUpDriveBytesMin && drive_bytes_ <= server::kUpDriveBytesMax)) {
      return {};
    }
    return refuse(fmt::format("a drive has {} to {}: say how large with --size",
                              text_bytes(server::kUpDriveBytesMin),
                              text_bytes(server::kUpDriveBytesMax)));
  }

  // Nobody has to prove anything at these doors.
  Attempt<void> check_reach() const {
    for (const auto* doors : {&nbd_, &nvme_, &resp_}) {
      for (const env::Address& at : *doors) {
        if (server::is_of_this_machine(at)) continue;
        return refuse(fmt::format(
            "whoever reaches {} could read and change everything: 'cairn up' is for this machine, "
            "and 'cairn serve' and 'cairn kv serve' have keys and TLS for others",
            at.text()));
      }
    }
    for (const env::Address& at : nvme_) {
      if (at.family == env::Address::Family::kLocal) {
        return refuse(
            fmt::format("NVMe hosts come by TCP, not to {}: write 127.0.0.1:4420", at.text()));
      }
    }
    return {};
  }

  Attempt<void> lose_all(const std::string& path) {
    const Attempt<void> meant = confirmation_.ask(fmt::format(
        "all that is in the volumes and in the key-value store of {} is lost", in_quotes(path)));
    if (!meant) return meant;
    return server::UpFolder::reset(path);
  }

  static std::vector<server::UpDoor> doors(const std::vector<env::Address>& said, uint16_t port) {
    std::vector<server::UpDoor> all;
    for (const env::Address& at : said) all.push_back({.at = at});
    if (all.empty()) all.push_back({.at = env::Address::loopback(port), .or_any_port = true});
    return all;
  }

  static task::Task<void> serve_in(env::Env& env, server::UpOptions& options,
                                   Attempt<void>& outcome) {
    outcome = co_await server::serve_up(env, options);
  }

  Attempt<int> serve(const config::Settings& settings, server::UpFolder& folder) {
    server::UpOptions options;
    options.folder = &folder;
    options.nbd = doors(nbd_, kNbdPort);
    const std::string nbd_socket = folder.socket_path("nbd.sock");
    options.nbd.insert(options.nbd.begin(), {.at = *env::Address::parse("unix:" + nbd_socket)});
    options.nvme = doors(nvme_, kNvmePort);
    options.resp = doors(resp_, kRespPort);
    options.http = doors(http_, kHttpPort);
    Attempt<std::optional<crypto::Digest>> token = read_http_token(http_token_);
    if (!token) return std::unexpected(token.error());
    options.http_token = std::move(*token);
    options.version = report::build_info().version;
    options.pid = ::getpid();
    options.hooks.log = log_to_stderr(settings.log_level);
    for (const std::string& note : folder.notes()) {
      options.hooks.say(config::LogLevel::kWarn, note);
    }
    Attempt<server::StateFolder> state = server::StateFolder::open(folder.state_path());
    if (!state) return std::unexpected(state.error());
    Attempt<server::ServerChanges> changes = state->load();
    if (!changes) return std::unexpected(changes.error());
    options.changes = std::move(*changes);
    options.hooks.keep = [&state](const server::ServerChanges& all) { return state->save(all); };
    options.events = {.folder = folder.state_path(), .command = on_event_};
    options.usual_arbiter = usual_arbiter();
    if (const Attempt<std::string> path = server::make_control_path())
      options.usual_control = *path;
    std::vector<std::string> sockets;
    options.has_socket = [&sockets](const std::string& path) { sockets.push_back(path); };
    options.ready = [](const Json& told) { greet(told); };
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(settings.io, config::world_options(settings));
    if (!world) return std::unexpected(world.error());
    Attempt<void> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) { return serve_in(env, options, outcome); });
    for (const std::string& path : sockets) ::unlink(path.c_str());
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    return kExitOk;
  }

  // Where 'cairn volume' and 'cairn pool' ask; empty: an arbiter of this user has it.
  static std::string usual_arbiter() {
    const Attempt<std::string> folder = server::make_run_folder("name an address");
    if (!folder) return "";
    const std::string path = *folder + "/arbiter.sock";
    if (posix::listening_process(path) || !env::Address::parse("unix:" + path)) return "";
    return path;
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

  static std::vector<env::Address> addresses(const Json& told, const char* door) {
    std::vector<env::Address> all;
    for (const Json& each : server::list_at(told, door)) {
      if (const auto at = env::Address::parse(each.get<std::string>())) all.push_back(*at);
    }
    return all;
  }

  // The last lines to paste.
  static std::string http_lines(const Json& told) {
    std::string text;
    for (const env::Address& at : addresses(told, "http")) {
      const bool is_local = at.family == env::Address::Family::kLocal;
      const std::string place = is_local ? fmt::format("--unix-socket {} http://localhost", at.path)
                                         : fmt::format("http://{}", at.text());
      for (const char* page : {"/metrics", "/healthz", "/api/v1/status", "/api/v1/events"}) {
        text += fmt::format("  curl -s {}{}\n", place, page);
      }
    }
    return text;
  }

  static void greet(const Json& told) {
    const char* called_as = std::getenv("CAIRN_CALLED_AS");
    const std::string_view cairn = called_as != nullptr ? called_as : "cairn";
    const std::string drive = server::text_at(told, "drive");
    std::string text = fmt::format("Everything is kept in {}\n", server::text_at(told, "folder"));
    text += fmt::format("\nThe volume {}, with three copies on four drives:\n", drive);
    for (const env::Address& at : addresses(told, "nbd")) {
      const std::string uri = server::nbd_uri(at, drive, {});
      text += fmt::format(
          "  qemu-io -f raw -c 'write -P 7 0 1M' -c flush -c 'read -P 7 0 1M' '{}'\n", uri);
      if (at.family == env::Address::Family::kLocal) {
        text +=
            fmt::format("  qemu-system-x86_64 -m 1G -drive file='{}',format=raw,if=virtio\n", uri);
        continue;
      }
      text += fmt::format(
          "  fio --name=try --ioengine=nbd --uri='{}' --rw=randrw --bs=4k --iodepth=16 "
          "--size=64M --time_based --runtime=2\n",
          uri);
    }
    for (const env::Address& at : addresses(told, "nvme")) {
      const server::Reach near = server::reach(at);
      const std::string nqn = server::text_at(told, "nqn");
      text += fmt::format("  nvme connect -t tcp -a {} -s {} -n {}\n", near.host, near.port, nqn);
      text += fmt::format("  {} nvme list nvme-tcp://{}/{}\n", cairn, at.text(), nqn);
    }
    text += "\nKeys and values:\n";
    for (const env::Address& at : addresses(told, "resp")) {
      const server::Reach near = server::reach(at);
      text += at.family == env::Address::Family::kLocal
                  ? fmt::format("  redis-cli -s {} set hello world\n", at.path)
                  : fmt::format("  redis-cli -p {} set hello world\n", near.port);
    }
    text += fmt::format(
        "\nHow it is, what changed, a drive that fails, and the end:\n  {0} status\n  {0} events\n"
        "  {0} demo kill-drive d2\n  {0} down\n\n",
        cairn);
    text += "The same for programs:\n" + http_lines(told) + "\n";
    say(text + "Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  }

  Confirmation confirmation_;
  std::string data_;
  uint64_t drive_bytes_ = 0;
  std::vector<env::Address> nbd_;
  std::vector<env::Address> nvme_;
  std::vector<env::Address> resp_;
  std::vector<env::Address> http_;
  std::string http_token_;
  std::string on_event_;
  bool reset_ = false;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_up(CLI::App& app) { return std::make_unique<UpCommand>(app); }

}  // namespace cairn::apps
