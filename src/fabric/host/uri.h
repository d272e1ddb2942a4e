// SPDX-License-Identifier: Apache-2.0
// Uri: a remote namespace as people write it.
//
//   nvme-tcp://192.168.0.7:4420/nqn.2026-11.io.cairn:box1?nsid=2&queues=4&hdgst=on
//   nvme-tcp://[fd00::7]/nqn.2026-11.io.cairn:box1?path=[fd01::7]:4420
//   nvme-tcp://192.168.0.7                       its discovery service
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.h"
#include "env/address.h"
#include "fabric/host/options.h"

namespace cairn::fabric {

inline constexpr uint16_t kNvmePort = 4420;
inline constexpr uint16_t kDiscoveryPort = 8009;

// HOST is an IP address, an IPv6 one in brackets, or "localhost"; other names need a resolver.
// PORT may be left out: 4420, or 8009 without an NQN. Bytes of an NQN that mean something in a URI
// are written %XX. Options:
//   nsid=N              1 to 4294967294, default 1
//   uuid=UUID           the namespace with this UUID, whatever its nsid; in the place of nsid
//   path=HOST[:PORT]    another way to the same subsystem; several times, 16 ways at most
//   hostnqn=NQN, hostid=UUID
//   dhchap_key=FILE, dhchap_ctrl_key=FILE    keys: names of files, which others read
//   dhchap_timeout, dhchap_again             as the times below
//   tls=required|refused, tls_key=FILE       refused by default; the key as above
//   tls_identity=0|1                         the version of the name the key is offered under
//   hdgst=on|off, ddgst=on|off
//   queues=N, depth=N, retries=N
//   batching=off|fixed|adaptive, caravan=N, caravan_bytes=N, doorbell=50us   see DoorbellOptions
//   lane.N.batching, lane.N.caravan, lane.N.caravan_bytes, lane.N.doorbell, lane.N.urgent=on
//                                            the same for the Nth I/O queue; see LaneOptions
//   connect_timeout, admin_timeout, io_timeout, kato, reconnect_delay, reconnect_delay_max,
//   loss_timeout, cancel_timeout, quiesce    each "500ms", "5s", "2m", "0"; loss_timeout also
//                                            "never"
struct Uri {
  std::vector<env::Address> paths;  // at least one
  std::string nqn;                  // that of discovery when the text has none
  uint32_t nsid = 1;
  Uuid uuid{};  // all zero: the nsid says which namespace is meant
  HostOptions options;

  bool is_discovery() const;

  // What is wrong, as a sentence with the part in question, for the user.
  static std::expected<Uri, std::string> parse(std::string_view text);
  // The canonical form, without what is as by default: parse(text()) is the same.
  std::string text() const;
};

}  // namespace cairn::fabric
