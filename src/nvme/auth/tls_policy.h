// SPDX-License-Identifier: Apache-2.0
// Who may come through TLS, with which keys, and what a transport tells of how it went.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "env/address.h"
#include "nvme/auth/tls_identity.h"
#include "nvme/auth/tls_key.h"

namespace cairn::nvme {

// Of one subsystem, by the NQN of the host.
using TlsKeys = std::map<std::string, TlsKey, std::less<>>;

// What a client offers to prove, in its order, before it has proven anything.
struct TlsOffer {
  std::vector<std::string> identities;
  env::Address local;  // where it reached us
  env::Address peer;
  Duration wait_max = 5_s;  // the handshake has time for so much, and for its own steps besides
};

// A handshake that came to nothing. `why` is for our own log.
struct TlsFailure {
  std::optional<TlsIdentity> identity;  // that it was about, if it came so far
  env::Address peer;
  const char* why = "";
  bool is_guess = false;  // its proof was wrong: the next attempt of this host has to wait
};

}  // namespace cairn::nvme
