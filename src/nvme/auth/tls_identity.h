// SPDX-License-Identifier: Apache-2.0
// TlsIdentity: the name under which a host offers a pre-shared key to a TLS server
// (NVMe/TCP 1.1, 3.6.1.3).
//
//   NVMe0R01 HOSTNQN SUBNQN              version 0, SHA-256
//   NVMe1R02 HOSTNQN SUBNQN DIGEST       version 1, SHA-384; the digest tells keys apart
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "crypto/hash.h"
#include "nvme/format/nqn.h"

namespace cairn::nvme {

enum class TlsIdentityVersion : uint8_t { k0 = 0, k1 = 1 };

// Both names and a SHA-384 digest in base64, with what is between them.
inline constexpr size_t kTlsIdentityMax = 8 + 1 + kNqnMax + 1 + kNqnMax + 1 + 64;

struct TlsIdentity {
  TlsIdentityVersion version = TlsIdentityVersion::k1;
  crypto::Hash hash = crypto::Hash::kSha256;  // or SHA-384
  std::string host_nqn;
  std::string nqn;     // of the subsystem
  std::string digest;  // of version 1, in base64; empty in version 0

  // kInvalid: it is none, and why. parse(text)->text() is the text.
  static Result<TlsIdentity> parse(std::string_view text);
  std::string text() const;
};

// Whether a name can be part of an identity: it has no space, which ends it there.
bool fits_tls_identity(std::string_view nqn);

}  // namespace cairn::nvme
