// SPDX-License-Identifier: Apache-2.0
// What the command line says about who may connect over NVMe/TCP, and how; it wins over a
// configuration file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/common/command.h"
#include "base/problem.h"
#include "server/common/options.h"

namespace cairn::apps {

struct AccessArgs {
  std::vector<std::string> hosts;              // only these may connect
  std::vector<bool> tls;                       // of each listener, whether it demands TLS
  std::vector<server::HostOptions> tls_hosts;  // and these, who have keys for TLS
  bool has_hosts() const { return !hosts.empty() || !tls_hosts.empty(); }
};

inline constexpr const char* kTlsKeyHelp =
    "the TLS key of a host, which may connect then; several allowed";

// --host NQN, and --tls WORD for each of the option `listener`. `words` outlives the command.
void add_host_option(CLI::App& app, AccessArgs& args);
void add_tls_option(CLI::App& app, std::string_view listener, AccessArgs& args);
// HOSTNQN=FILE, for --tls-key.
Attempt<void> add_tls_host(const std::string& text, AccessArgs& args);

// What was said becomes that of a subsystem, and of listeners that `listener` names.
void take_host_args(const AccessArgs& args, server::SubsystemConfig& subsystem);
Attempt<void> take_tls_args(const AccessArgs& args, std::string_view listener,
                            std::vector<server::ListenerOptions>& listeners);

}  // namespace cairn::apps
