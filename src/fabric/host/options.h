// SPDX-License-Identifier: Apache-2.0
// How a host behaves towards the targets it connects to. Each wait has its limit here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/units.h"
#include "fabric/host/credentials.h"
#include "fabric/host/lane_options.h"
#include "fabric/wire/doorbell.h"
#include "nvme/auth/tls_key.h"

namespace cairn::fabric {

// Commands outstanding on one queue: the table's size is fixed when the queue is made.
inline constexpr uint16_t kHostDepthMax = 1023;
inline constexpr uint16_t kHostQueuesMax = 128;
inline constexpr uint16_t kHostPathsMax = 16;
// What one command carries at most, whatever MDTS says: larger ones would keep others waiting.
inline constexpr uint32_t kHostTransferMax = 1 << 20;
// Bytes received and not yet understood, per connection.
inline constexpr uint32_t kHostStagingSize = 64 * 1024;

struct HostOptions {
  std::string host_nqn;               // empty: made from host_id
  std::array<uint8_t, 16> host_id{};  // all zero: made from host_nqn, or drawn
  bool header_digest = false;         // demanded: a target without is refused
  bool data_digest = false;
  // I/O queues per controller; a target may grant fewer. 0: admin commands are all there will be.
  uint16_t queues = 1;
  uint16_t depth = 128;      // commands outstanding on each; likewise
  DoorbellOptions doorbell;  // of the I/O queues; an admin queue's commands never wait
  LaneOptionsMap lanes;      // I/O queues that differ

  // Files of DH-HMAC-CHAP secrets, this host's and the controller's. Whoever may read files turns
  // them into `credentials`; a session that is given names only refuses to open.
  std::string key_file;
  std::string controller_key_file;
  std::shared_ptr<const HostCredentials> credentials;  // null: none

  // TLS: demanded, with this host's key for the target. The file is turned into `tls_key` as above.
  bool tls = false;
  std::string tls_key_file;
  std::shared_ptr<const nvme::TlsKey> tls_key;
  nvme::TlsIdentityVersion tls_identity = nvme::TlsIdentityVersion::k1;

  Duration authenticate_timeout = 30_s;  // of each queue's transaction
  Duration reauthenticate = 0_s;         // the admin queue's, so often while it lives; 0: never
  Duration connect_timeout = 10_s;       // of each queue: from the first SYN to Connect's answer
  Duration admin_timeout = 10_s;         // of each admin command
  Duration io_timeout = 30_s;            // of each I/O command; then the connection is given up
  Duration keep_alive = 5_s;          // KATO; 0: none, and a silent target is noticed by I/O only
  Duration reconnect_delay = 100_ms;  // before the first try; doubles with each, half is random
  Duration reconnect_delay_max = 10_s;
  Duration loss_timeout = 600_s;  // without a usable path for so long, requests fail
  Duration cancel_timeout = 1_s;  // a cancelled command waits so long for its answer
  // A change whose connection was lost unanswered is not sent again, nor fails, before this has
  // passed (and after silence the keep-alive time as well), because the target may still be
  // executing it.
  Duration quiesce = 1_s;
  uint32_t retries_max = 5;  // of a command that failed and may be tried again

  // How the doorbell of this I/O queue is set, and whether the queue is kept for urgent requests.
  DoorbellOptions doorbell_of(uint16_t queue_id) const {
    const auto own = lanes.find(queue_id);
    return own == lanes.end() ? doorbell : own->second.over(doorbell);
  }
  bool is_urgent(uint16_t queue_id) const {
    const auto own = lanes.find(queue_id);
    return own != lanes.end() && own->second.urgent;
  }

  // Credentials are the same when they are one object.
  bool operator==(const HostOptions&) const = default;
};

}  // namespace cairn::fabric
