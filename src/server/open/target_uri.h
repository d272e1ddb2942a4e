// SPDX-License-Identifier: Apache-2.0
// Where a command of `cairn nvme` goes: a URI as typed, its names looked up, this host's own name
// filled in.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "base/problem.h"
#include "fabric/host/options.h"
#include "fabric/host/uri.h"

namespace cairn::server {

// What a command needs its URI to name.
enum class Needs : uint8_t {
  kDiscovery,  // a discovery service, or a subsystem whose address also has one
  kSubsystem,  // an NQN
  kNamespace,  // an NQN; nsid is 1 unless given
};

// The address of a host name, as a URI has it ("192.168.0.7", "[fd00::7]"), or why there is none.
using Resolver = std::function<std::expected<std::string, std::string>(const std::string& name)>;
Resolver system_resolver();

// `text` with the host names in it, after nvme-tcp:// and after path=, replaced by addresses. The
// Problem names the host.
Attempt<std::string> resolve_names(std::string_view text, const Resolver& resolver);

// Whether the text has the right form, without looking anything up.
Attempt<void> check_target_uri(std::string_view text, Needs needs);
// Where it leads, with its key files read, and with a loss_timeout of 30 s unless given. Looks
// names up and may block for that: not inside a world.
Attempt<fabric::Uri> find_target_uri(std::string_view text, Needs needs);

// What identifies this user on this machine to targets, the same in every run.
struct HostFacts {
  std::string nqn_file;      // contents of /etc/nvme/hostnqn; empty: there is none
  std::string id_file;       // of /etc/nvme/hostid
  std::string machine_id;    // of /etc/machine-id
  std::string machine_name;  // the node's name
  uint32_t user_id = 0;
};
HostFacts gather_host();
// Fills in what `options` leaves open: the system's host NQN and id where it has them, else a name
// made from the machine's id and name and from the user.
void name_host_stably(const HostFacts& facts, fabric::HostOptions& options);

}  // namespace cairn::server
