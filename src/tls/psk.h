// SPDX-License-Identifier: Apache-2.0
// Pre-shared keys: the only thing our ends prove themselves with.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "crypto/hash.h"
#include "task/task.h"

namespace cairn::tls {

// A key goes with one hash, and so with one cipher suite: SHA-256 with TLS_AES_128_GCM_SHA256,
// SHA-384 with TLS_AES_256_GCM_SHA384.
struct Psk {
  std::string identity;  // what both ends call it; no secret
  crypto::Hash hash = crypto::Hash::kSha256;
  crypto::Digest key;
};

// Who knows a server's keys.
class PskKeeper {
 public:
  // One of the identities that a client offers, with its key. May take its time, within that of the
  // handshake. kDenied: none is known here; kLimit: not now. The text is for our own log, the
  // client hears unknown_psk_identity or internal_error.
  virtual task::Task<Result<Psk>> choose(std::vector<std::string> identities) = 0;

 protected:
  ~PskKeeper() = default;
};

}  // namespace cairn::tls
