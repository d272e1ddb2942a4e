// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration file that say where NVMe hosts connect and who may.
// docs/box.md explains each.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "server/common/options.h"

namespace cairn::server {

// Of one more listener, and of who may connect to a subsystem and how they prove themselves. What
// they end in outlives the section.
config::Section listener_keys(std::vector<ListenerOptions>& listeners);
void add_access_keys(config::Section& keys, SubsystemConfig& subsystem);

// Whether hosts can know a subsystem by this name.
Attempt<void> check_subsystem_nqn(const std::string& text);
// "required" or "refused": whether a listener's hosts come through TLS.
Attempt<bool> parse_tls(const std::string& text);

}  // namespace cairn::server
