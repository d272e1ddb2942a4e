// SPDX-License-Identifier: Apache-2.0
// TlsKey: the pre-shared key of a host as people keep it, "NVMeTLSkey-1:01:BASE64:", and what TLS
// gets of it (NVMe/TCP 1.1, 3.6.1.3 and 3.6.1.5).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "crypto/hash.h"
#include "crypto/secret.h"
#include "nvme/auth/tls_identity.h"

namespace cairn::nvme {

// Whose connection it is.
struct TlsNames {
  std::string_view host;
  std::string_view subsystem;
};

// What TLS is given: the identity both ends know the key by, and the key, as long as its hash.
struct TlsPsk {
  TlsIdentity identity;
  crypto::Digest key;
};

// Move-only; its key is in memory that is wiped and that core files leave out.
class TlsKey {
 public:
  // kInvalid: it is not of that form; kCorrupt: its checksum is wrong. Neither says any of it.
  static Result<TlsKey> parse(std::string_view text);
  // `key` is 32 or, for SHA-384, 48 random bytes. With a hash it is bound to a host's name before
  // it is used; without, its length says which hash goes with it.
  static TlsKey make(std::optional<crypto::Hash> binding, Bytes key);

  // As parse() takes it. Secret: the caller wipes it.
  std::string text() const;

  // Configured PSK to retained PSK to TLS PSK. kInvalid: a name that has no place in an identity,
  // or names that are together too long for version 0, whose derivation takes 255 bytes.
  Result<TlsPsk> psk_of(TlsNames names, TlsIdentityVersion version) const;

  Bytes key() const { return key_.bytes(); }
  std::optional<crypto::Hash> binding() const { return binding_; }
  // The hash of its TLS PSK, and so of the cipher suite it can be used with.
  crypto::Hash hash() const {
    return key_.bytes().size() == crypto::digest_size(crypto::Hash::kSha256)
               ? crypto::Hash::kSha256
               : crypto::Hash::kSha384;
  }

 private:
  std::optional<crypto::Hash> binding_;
  crypto::KeptSecret key_;
};

}  // namespace cairn::nvme
