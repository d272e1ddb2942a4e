// SPDX-License-Identifier: Apache-2.0
// The proofs of DH-HMAC-CHAP: what a host or a controller answers to the other's challenge
// (NVMe Base 2.0, 8.13.5.3 and 8.13.5.4).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "crypto/hash.h"
#include "nvme/auth/auth_format.h"
#include "nvme/auth/auth_secret.h"

namespace cairn::nvme {

struct AuthNames {
  std::string_view host;
  std::string_view subsystem;
};

// What both ends know of one challenge.
struct AuthChallenged {
  AuthHash hash{};
  uint16_t transaction = 0;
  uint32_t sequence = 0;
  Bytes challenge;
  Bytes shared;  // the DH secret; empty: the NULL group
};

crypto::Digest host_proof(const AuthSecret& secret, const AuthNames& names,
                          const AuthChallenged& challenged);
crypto::Digest controller_proof(const AuthSecret& secret, const AuthNames& names,
                                const AuthChallenged& challenged);

}  // namespace cairn::nvme
