// SPDX-License-Identifier: Apache-2.0
// AuthSecret: the key of a host or subsystem as people keep it: "DHHC-1:01:BASE64:"
// (NVMe Base 2.0, 8.13.5.8).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "crypto/hash.h"
#include "crypto/secret.h"
#include "nvme/auth/auth_format.h"

namespace cairn::nvme {

// Move-only; its key is in memory that is wiped and that core files leave out.
class AuthSecret {
 public:
  // kInvalid: it is not of that form; kCorrupt: its checksum is wrong. Neither says any of it.
  static Result<AuthSecret> parse(std::string_view text);
  // `key` is 32, 48 or 64 random bytes. With a hash it is bound to a name before it is used.
  static AuthSecret make(std::optional<AuthHash> hash, Bytes key);

  // As parse() takes it. Secret: the caller wipes it.
  std::string text() const;

  // What proofs are made with: the key, or bound to the NQN of whoever it belongs to.
  crypto::Digest key_of(std::string_view nqn) const;

  Bytes key() const { return key_.bytes(); }
  std::optional<AuthHash> hash() const { return hash_; }
  bool operator==(const AuthSecret& other) const {
    return hash_ == other.hash_ && std::ranges::equal(key(), other.key());
  }

 private:
  std::optional<AuthHash> hash_;
  crypto::KeptSecret key_;
};

// HMAC(key, NQN || "NVMe-over-Fabrics"): a key that only serves this name.
crypto::Digest bind_to_name(AuthHash hash, Bytes key, std::string_view nqn);

}  // namespace cairn::nvme
