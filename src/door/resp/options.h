// SPDX-License-Identifier: Apache-2.0
// What a RESP door can be told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/units.h"
#include "crypto/hash.h"
#include "kv/ring/view.h"
#include "stream/reception.h"
#include "tls/certificate.h"

namespace cairn::door::resp {

// The cluster whose keys a door serves.
struct ClusterOptions {
  kv::ring::MemberId self;  // this node
  // Null: it knows none yet.
  std::function<std::shared_ptr<const kv::ring::View>()> view;
  // Whether that view may be relied on: the node's lease is good. Empty: always.
  std::function<bool()> is_current;
  // Counters of the node, for INFO and metrics, by their names. Empty: none.
  std::function<std::vector<std::pair<std::string, uint64_t>>()> counters;
};

struct RespOptions {
  uint32_t clients_max = 10'000;
  // Of memory that requests and replies of all clients have; then the client with most has to go.
  uint64_t client_bytes_max = 1_GiB;
  // How long a client may take to send the rest of a request, or to take replies.
  Duration stall_timeout = 120_s;
  // How long it may send nothing at all; zero: as long as it likes.
  Duration idle_timeout{0};
  // The digest of the password that clients must show; none: they need none.
  std::optional<crypto::Digest> password;
  // Clients must come through TLS, and see this; null: without. Outlives the door.
  const tls::Certificate* certificate = nullptr;
  // Shown by INFO.
  std::string version;
  std::string keeper;      // who keeps the keys: "memory", "drive"
  std::string durability;  // when a change survives a crash: "commit", "interval", "none"
  std::optional<ClusterOptions> cluster;  // none: the keys are all here
  // Clients that did not come in, and why; null: nobody is told.
  stream::RefusedConnectionHook on_refused;
};

// How a password is kept.
inline crypto::Digest digest_of_password(std::string_view password) {
  return crypto::digest(crypto::Hash::kSha256, {as_bytes(password)});
}

}  // namespace cairn::door::resp
