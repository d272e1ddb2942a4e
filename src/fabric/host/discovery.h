// SPDX-License-Identifier: Apache-2.0
// What a discovery service knows: which subsystems this host may connect to, and where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "env/address.h"
#include "env/env.h"
#include "fabric/host/options.h"
#include "fabric/host/session.h"
#include "nvme/format/discovery_format.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::fabric {

// More than any service has; a log that claims more is refused.
inline constexpr uint64_t kDiscoveryRecordsMax = 4096;

struct DiscoveryRecord {
  nvme::TransportType transport{};
  nvme::AddressFamily family{};
  nvme::SubsystemType type{};
  nvme::TcpSecurity security{};
  uint8_t requirements = 0;  // TREQ
  uint16_t port_id = 0;
  uint16_t controller_id = 0;
  uint16_t admin_queue_size_max = 0;
  uint16_t flags = 0;   // EFLAGS
  std::string nqn;      // as it came; printable or not is for whoever shows it
  std::string address;  // TRADDR
  std::string service;  // TRSVCID

  // Where to connect to; none unless it is NVMe/TCP at a sound IP address and port.
  std::optional<env::Address> tcp_address() const;
};

struct DiscoveryLog {
  uint64_t generation = 0;
  std::vector<DiscoveryRecord> records;
};

// The records of a whole log page, read as hostile input. kInvalid: it breaks off, or its format is
// unknown; kLimit: too many records.
Result<DiscoveryLog> parse_discovery_log(Bytes page);

// Reads the log in pieces, and again when it changed meanwhile. Errors as get_log, and kLimit: it
// does not stop changing.
task::Task<Result<DiscoveryLog>> read_discovery_log(HostSession& session, task::CancelToken token);

// Connects to the discovery service at `address`, reads its log and disconnects. Errors also as
// HostSession::open.
task::Task<Result<DiscoveryLog>> discover(env::Env& env, env::Address address, HostOptions options,
                                          task::CancelToken token);

}  // namespace cairn::fabric
