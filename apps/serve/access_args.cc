// SPDX-License-Identifier: Apache-2.0
#include "apps/serve/access_args.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "server/common/access_keys.h"
#include "server/common/host_nqn.h"

namespace cairn::apps {

namespace {

// A host with a key may connect, whatever else it has.
void add_host(const server::HostOptions& host, server::SubsystemConfig& subsystem) {
  const auto known = std::ranges::find(subsystem.hosts, host.nqn, &server::HostOptions::nqn);
  if (known == subsystem.hosts.end()) {
    subsystem.hosts.push_back(host);
  } else {
    known->tls_key = host.tls_key;
  }
  std::vector<std::string>& allowed = subsystem.options.hosts;
  if (std::ranges::find(allowed, host.nqn) == allowed.end()) allowed.push_back(host.nqn);
  subsystem.options.allow_any_host = false;
}

}  // namespace

void add_host_option(CLI::App& app, AccessArgs& args) {
  add_values(app, "--host NQN", "only these NVMe hosts may connect; several allowed",
             [&args](const std::string& text) -> Attempt<void> {
               if (Attempt<void> named = server::check_host_nqn(text); !named) return named;
               args.hosts.push_back(text);
               return {};
             });
}

void add_tls_option(CLI::App& app, std::string_view listener, AccessArgs& args) {
  add_values(app, "--tls WORD",
             fmt::format("required or refused (the default), one per {}", listener),
             [&args](const std::string& text) -> Attempt<void> {
               const Attempt<bool> tls = server::parse_tls(text);
               if (tls) args.tls.push_back(*tls);
               return tls ? Attempt<void>() : std::unexpected(tls.error());
             });
}

Attempt<void> add_tls_host(const std::string& text, AccessArgs& args) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return refuse(fmt::format("{} is not HOSTNQN=FILE", in_quotes(text)));
  }
  const std::string nqn = text.substr(0, equals);
  if (Attempt<void> named = server::check_host_nqn(nqn); !named) return named;
  args.tls_hosts.push_back({.nqn = nqn, .tls_key = text.substr(equals + 1)});
  return {};
}

void take_host_args(const AccessArgs& args, server::SubsystemConfig& subsystem) {
  if (!args.hosts.empty()) {
    subsystem.options.hosts = args.hosts;
    subsystem.options.allow_any_host = false;
  }
  for (const server::HostOptions& host : args.tls_hosts) add_host(host, subsystem);
}

Attempt<void> take_tls_args(const AccessArgs& args, std::string_view listener,
                            std::vector<server::ListenerOptions>& listeners) {
  if (args.tls.size() > listeners.size()) {
    return refuse(fmt::format("--tls goes with a {} each: give as many of both, in the same order",
                              listener));
  }
  for (size_t i = 0; i < args.tls.size(); ++i) listeners[i].tls = args.tls[i];
  return {};
}

}  // namespace cairn::apps
