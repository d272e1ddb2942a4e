// SPDX-License-Identifier: Apache-2.0
#include "apps/kv/node_args.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include "apps/common/client_keys.h"
#include "apps/common/command.h"
#include "base/duration.h"
#include "base/words.h"
#include "kv/engine/shares.h"
#include "kv/ring/view.h"
#include "rack/client_keys.h"
#include "server/common/reach.h"
#include "server/open/key_file.h"
#include "server/open/target_uri.h"

namespace cairn::apps {

namespace {

constexpr Duration kLeaseMin = 1_s;
constexpr Duration kLeaseMax = 60_s;

bool is_fixed(const env::Address& at) {
  return at.family != env::Address::Family::kLocal && at.port != 0;
}
// No address that others could ask for, as 0.0.0.0.
bool is_any(const env::Address& at) {
  const std::string text = at.text();
  return text.starts_with("0.0.0.0:") || text.starts_with("[::]:");
}

Attempt<void> check_name(const std::string& text) {
  if (!text.empty() && text.size() <= kv::ring::kNameMax && escaped(text) == text) return {};
  return refuse(fmt::format("{} is no name: write up to {} letters, digits and signs",
                            in_quotes(text), kv::ring::kNameMax));
}

}  // namespace

NodeArgs::NodeArgs(CLI::App& app) {
  add_value(app, "--join META",
            "be a node of the cluster whose metadata is there: meta://ADDR:PORT, of 'cairn rack "
            "serve', or etcd://ADDR:PORT, with options as 'cairn rack offers --help' has them",
            [this](const std::string& text) -> Attempt<void> {
              Attempt<server::StoreUri> uri = server::StoreUri::parse(text);
              if (!uri) return std::unexpected(uri.error());
              if (uri->kind == server::StoreUri::Kind::kFolder) {
                return refuse(
                    "several nodes cannot share a folder: serve it with 'cairn rack serve', and "
                    "name meta://ADDR:PORT here");
              }
              options_.meta = std::move(*uri);
              meta_ = text;
              return {};
            });
  options_.listen = env::Address::loopback(server::kKvNodePort);
  add_value(app, "--listen ADDR:PORT",
            fmt::format("of a node: where other nodes find it ({})", options_.listen.text()),
            [this](const std::string& text) -> Attempt<void> {
              Result<env::Address> at = env::Address::parse(text);
              if (!at || !is_fixed(*at) || is_any(*at)) {
                return refuse(
                    fmt::format("{} is no address that other nodes can ask for: write "
                                "one of this machine's, as 10.0.0.9:{}",
                                in_quotes(text), server::kKvNodePort));
              }
              options_.listen = std::move(*at);
              return {};
            });
  const auto add_label = [&app](const char* spec, std::string& into, const char* help) {
    add_value(app, spec, help, [&into](const std::string& text) -> Attempt<void> {
      if (const Attempt<void> good = check_name(text); !good) return good;
      into = text;
      return {};
    });
  };
  add_label("--name NAME", options_.name, "of a node, for people and --tls-keys (its address)");
  add_label("--machine NAME", options_.location.machine,
            "where a node is: replicas of a key are kept on different machines (this host)");
  add_label("--rack NAME", options_.location.rack, "the same of a rack (none)");
  add_integer(app, "--replicas N", replicas_,
              {.min = 1, .max = static_cast<int64_t>(kv::ring::kReplicasMax)},
              "of each key, where a cluster begins: that is when so many nodes are there (3)");
  add_value(app, "--lease TIME", "how long a node that is silent keeps its place (3s)",
            [this](const std::string& text) -> Attempt<void> {
              const Attempt<Duration> time = parse_duration(text);
              if (!time) return std::unexpected(time.error());
              if (*time < kLeaseMin || *time > kLeaseMax) {
                return refuse("a lease has from 1s to 60s");
              }
              options_.lease = *time;
              return {};
            });
  add_values(app, "--weight NAME=N",
             "how much of this node's drive a caller of that name gets while others want it too: "
             "another node or a program, by its TLS key (1)",
             [this](const std::string& text) -> Attempt<void> {
               const size_t at = text.rfind('=');
               int64_t weight = 0;
               if (at != std::string::npos) {
                 const char* const end = text.data() + text.size();
                 const auto read = std::from_chars(text.data() + at + 1, end, weight);
                 if (read.ptr != end || read.ec != std::errc()) weight = 0;
               }
               if (at == 0 || weight < 1 || weight > kv::engine::kTenantWeightMax) {
                 return refuse(fmt::format("{} is no weight: write NAME=N, with N from 1 to {}",
                                           in_quotes(text), kv::engine::kTenantWeightMax));
               }
               options_.weights[text.substr(0, at)] = static_cast<uint32_t>(weight);
               return {};
             });
  add_client_keys(
      app,
      "nodes must come to this one through TLS with a key of this file, lines of ROLE NAME "
      "KEY, where each node is a writer",
      options_.clients);
  add_text(app, "--node-key FILE", key_file_,
           "the TLS key of this node, by which others know it under its --name");
}

Attempt<void> NodeArgs::check_reach(bool is_insecure) const {
  if ((options_.clients == nullptr) != key_file_.empty()) {
    return refuse(
        "nodes that speak TLS need two files: --tls-keys FILE, who may come, and --node-key FILE, "
        "the key of this one");
  }
  if (options_.clients || is_insecure || server::is_of_this_machine(options_.listen)) return {};
  return refuse(fmt::format(
      "whoever reaches {} could read and change all keys: say with --tls-keys FILE and --node-key "
      "FILE which nodes may, or write --insecure if nobody else is on that network",
      options_.listen.text()));
}

Attempt<server::KvNodeOptions> NodeArgs::options(const std::vector<env::Address>& resp,
                                                 bool is_insecure) const {
  server::KvNodeOptions options = options_;
  if (const Attempt<void> safe = check_reach(is_insecure); !safe) {
    return std::unexpected(safe.error());
  }
  for (const env::Address& at : resp) {
    if (at.family == env::Address::Family::kLocal) continue;
    if (!is_fixed(at) || is_any(at)) {
      return refuse(
          fmt::format("clients of the cluster are sent to {}, where they find nobody: "
                      "write an address of this machine and a port",
                      at.text()));
    }
    if (options.resp.empty()) options.resp = at.text();
  }
  if (options.name.empty()) options.name = options.listen.text();
  if (options.location.machine.empty())
    options.location.machine = server::gather_host().machine_name;
  options.replicas = static_cast<uint32_t>(replicas_);
  if (key_file_.empty()) return options;
  const Attempt<nvme::TlsKey> key = server::read_tls_key_file(key_file_);
  if (!key) return std::unexpected(key.error());
  Result<rpc::NamedKey> named = rack::named_key(options.name, *key);
  if (!named) {
    return refuse(fmt::format("--name {}: {}", in_quotes(options.name), named.error().what()));
  }
  options.security = std::make_shared<const rpc::KeySecurity>(std::move(*named));
  return options;
}

}  // namespace cairn::apps
