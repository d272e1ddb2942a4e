// SPDX-License-Identifier: Apache-2.0
// `cairn kv serve`: keys and values for the clients of Redis.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/control.h"
#include "apps/common/http.h"
#include "apps/common/log.h"
#include "apps/common/output.h"
#include "apps/kv/commands.h"
#include "apps/kv/door_args.h"
#include "apps/kv/node_args.h"
#include "base/duration.h"
#include "base/words.h"
#include "kv/store/durability.h"
#include "report/build_info.h"
#include "server/common/reach.h"
#include "server/kv/serve.h"
#include "server/open/key_file.h"
#include "server/open/open_stack.h"
#include "world/machine/facts.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

task::Task<void> serve_in(env::Env& env, server::KvServeOptions& options, Attempt<void>& outcome) {
  outcome = co_await server::serve_keys(env, options);
}

class ServeCommand final : public Command {
 public:
  explicit ServeCommand(CLI::App& app) {
    any_number(optional(add_values(
        app, "STACK", "the drive that keeps keys and values: file:/srv/kv,size=10G, or a stack",
        [this](const std::string& text) -> Attempt<void> {
          stacks_.push_back(text);
          return {};
        })));
    add_switch(app, "--memory", in_memory_,
               "keep keys and values in memory, and lose them at the end");
    add_value(app, "--durability WHEN",
              "when changes survive a crash: commit, before they are acknowledged; interval, "
              "within a second; none, some time (commit)",
              [this](const std::string& text) { return take_durability(text); });
    add_switch(app, "--format", options_.keyspace.may_format,
               "also take a drive that holds something else, which is lost; keys and values stay");
    add_size(app, "--object-size SIZE", options_.keyspace.object_bytes,
             "of a key and its value on average, for a drive that becomes a store (272)");
    add_size(app, "--memory-max SIZE", options_.keyspace.memory_max,
             "what they may take there; then writes are refused (4G)");
    add_values(app, "--resp ADDRESS",
               "ADDR:PORT or unix:SOCKET for clients of Redis, several allowed (127.0.0.1:6390)",
               [this](const std::string& text) -> Attempt<void> {
                 Attempt<env::Address> at = parse_door_address(text);
                 if (!at) return std::unexpected(at.error());
                 options_.resp.push_back(std::move(*at));
                 return {};
               });
    add_value(app, "--password-file FILE", "clients must show the password in this file",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<server::Password> password = server::read_password_file(text);
                if (!password) return std::unexpected(password.error());
                options_.door.password = door::resp::digest_of_password(as_text(password->bytes()));
                return {};
              });
    add_tls(app);
    add_switch(app, "--insecure", is_insecure_,
               "without a password, at an address that others reach: they can read and change all");
    add_integer(app, "--clients-max N", clients_max_, {.min = 1, .max = 1 << 20},
                "clients at a time (10000)");
    add_value(app, "--drain-timeout TIME", "at the end, for requests in flight (10s)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                options_.drain_timeout = *time;
                return {};
              });
    add_http(app, options_.http, http_token_);
    add_control(app, control_);
    add_on_event(app, options_.events.own.command);
    node_.emplace(app);
    add_settings(app, settings_);
    set_examples(app, {"cairn kv serve file:/srv/kv,size=10G",
                       "cairn kv serve 'mirror(file:/a/kv, file:/b/kv)' --durability interval",
                       "cairn kv serve --memory",
                       "cairn kv serve --memory --resp 127.0.0.1:6390 --resp unix:/run/kv.sock",
                       "cairn kv serve --memory --password-file kv.password --resp 10.0.0.9:6390",
                       "cairn kv serve --memory --tls-cert cert.pem --tls-key key.pem",
                       "cairn kv serve file:/srv/kv,size=10G --join meta://127.0.0.1:4430"});
  }

  Attempt<int> run() override {
    const Attempt<config::Settings> settings = config::resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    if (const Attempt<void> ready = prepare(*settings); !ready) {
      return std::unexpected(ready.error());
    }
    ::umask(0077);  // sockets are this user's alone
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
  void add_tls(CLI::App& app) {
    for (const auto& [spec, into, help] :
         {std::tuple{"--tls-cert FILE", &files_.chain,
                     "clients must come through TLS; what is shown to them"},
          std::tuple{"--tls-key FILE", &files_.key, "the key of --tls-cert"},
          std::tuple{"--tls-ca FILE", &files_.clients,
                     "clients must show a certificate that one of these has signed"}}) {
      add_value(app, spec, help, [into](const std::string& text) -> Attempt<void> {
        *into = text;
        return {};
      });
    }
  }

  // What the words say of where keys and values are kept.
  Attempt<void> take_keeper() {
    if (stacks_.empty() && !in_memory_) {
      return refuse(
          "say where keys and values are kept: on a drive, as file:/srv/kv,size=10G, or --memory");
    }
    if (in_memory_) {
      if (stacks_.empty()) return {};
      return refuse("say one place for keys and values: the drive, or --memory");
    }
    if (stacks_.size() > 1) {
      return refuse(
          fmt::format("keys and values are kept on one drive: make one of several, as in "
                      "'concat({}, {})'",
                      stacks_[0], stacks_[1]));
    }
    const auto understood = server::StackPlan::prepare(stacks_[0], server::LookUp::kWhenOpened);
    if (!understood) return std::unexpected(understood.error());
    options_.keyspace.stack = stacks_[0];
    return {};
  }

  Attempt<void> take_durability(const std::string& text) {
    using kv::store::Durability;
    for (const auto& [word, durability] :
         {std::pair{"commit", Durability::kCommit}, std::pair{"interval", Durability::kInterval},
          std::pair{"none", Durability::kNone}}) {
      if (text != word) continue;
      options_.keyspace.durability = durability;
      return {};
    }
    return refuse(
        fmt::format("{} is no durability: write commit, interval or none", in_quotes(text)));
  }

  Attempt<void> prepare(const config::Settings& settings) {
    if (Attempt<void> checked = machine::check_cores(settings.cores, machine::gather_cpu());
        !checked) {
      return checked;
    }
    if (Attempt<void> taken = take_keeper(); !taken) return taken;
    if (options_.resp.empty()) options_.resp.push_back(env::Address::loopback(kRespPort));
    if (Attempt<void> taken = take_certificate(); !taken) return taken;
    if (Attempt<void> safe = check_reach(); !safe) return safe;
    if (Attempt<void> taken = take_node(); !taken) return taken;
    options_.door.clients_max = static_cast<uint32_t>(clients_max_);
    options_.door.version = report::build_info().version;
    options_.log = log_to_stderr(settings.log_level);
    Attempt<std::optional<crypto::Digest>> token = read_http_token(http_token_);
    if (!token) return std::unexpected(token.error());
    options_.http_token = std::move(*token);
    options_.events.control_path = control_path(control_, "kv");
    options_.events.control_ready = [this](const std::string& path) {
      ::chmod(path.c_str(), 0600);
      sockets_.push_back(path);
    };
    options_.http_ready = [this](const std::vector<env::Address>& addresses) {
      greet_http(addresses, sockets_);
    };
    options_.ready = [this](const std::vector<env::Address>& addresses) { greet(addresses); };
    return {};
  }

  Attempt<void> take_certificate() {
    if (files_.chain.empty() && files_.key.empty() && files_.clients.empty()) return {};
    if (files_.chain.empty() || files_.key.empty()) {
      return refuse("a certificate needs its key: give both, --tls-cert FILE and --tls-key FILE");
    }
    Attempt<tls::Certificate> certificate = server::read_certificate(files_);
    if (!certificate) return std::unexpected(certificate.error());
    certificate_.emplace(std::move(*certificate));
    options_.door.certificate = &*certificate_;
    return {};
  }

  // Who shows a certificate has proven as much as who knows a password.
  Attempt<void> check_reach() const {
    const bool asks = options_.door.password || !files_.clients.empty();
    for (const env::Address& at : options_.resp) {
      if (asks || is_insecure_ || server::is_of_this_machine(at)) continue;
      return refuse(fmt::format(
          "whoever reaches {} could read and change all keys: say with --password-file FILE who "
          "may, listen at 127.0.0.1, or write --insecure if nobody else is on that network",
          at.text()));
    }
    return {};
  }

  void greet(const std::vector<env::Address>& addresses) {
    if (options_.node) {
      say(fmt::format(
          "node {} of the cluster in {}, at {} for other nodes\n  cairn kv ring show "
          "--meta {}\n",
          options_.node->name, node_->meta(), options_.node->listen.text(), node_->meta()));
    }
    for (const env::Address& at : addresses) {
      say(fmt::format("serving keys and values, {}, at {}\n",
                      in_memory_ ? "in memory" : "on " + options_.keyspace.stack, at.text()));
      const std::string secrets = fmt::format("{}{}", options_.door.password ? " --askpass" : "",
                                              options_.door.certificate != nullptr ? " --tls" : "");
      if (at.family == env::Address::Family::kLocal) {
        sockets_.push_back(at.path);
        say(fmt::format("  redis-cli -s {}{}\n", at.path, secrets));
      } else {
        const server::Reach near = server::reach(at);
        say(fmt::format("  redis-cli{} -h {} -p {}{}\n", options_.node ? " -c" : "", near.host,
                        near.port, secrets));
      }
    }
    say("Ctrl-C or SIGTERM stops it in order, a second one at once.\n");
    finish_output();
  }

  Attempt<void> take_node() {
    if (!node_->is_given()) return {};
    if (in_memory_) {
      return refuse(
          "a node of a cluster keeps its keys on a drive, so that it has them when it comes back: "
          "name one instead of --memory, as file:/srv/kv,size=10G");
    }
    Attempt<server::KvNodeOptions> node = node_->options(options_.resp, is_insecure_);
    if (!node) return std::unexpected(node.error());
    options_.node = std::move(*node);
    return {};
  }

  server::KvServeOptions options_;
  std::optional<NodeArgs> node_;  // once its options are declared
  std::vector<std::string> stacks_;
  bool in_memory_ = false;
  bool is_insecure_ = false;
  int clients_max_ = 10'000;
  server::CertificateFiles files_;
  std::optional<tls::Certificate> certificate_;
  std::string control_;
  std::string http_token_;
  std::vector<std::string> sockets_;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_kv_serve(CLI::App& app) {
  return std::make_unique<ServeCommand>(app);
}

}  // namespace cairn::apps
