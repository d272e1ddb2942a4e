// SPDX-License-Identifier: Apache-2.0
// What a client says of its keys before anybody has proven anything.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace cairn::tls {

// Identities of one ClientHello that are looked at; the rest is not.
inline constexpr size_t kIdentitiesMax = 16;
// Bytes of one identity; a longer one is skipped.
inline constexpr size_t kIdentityMax = 1024;

// The identities in the extension pre_shared_key, in the client's order (RFC 8446, 4.2.11).
// kInvalid: it breaks off.
Result<std::vector<std::string>> offered_identities(Bytes extension);

// Whether TLS 1.3 is among those in the extension supported_versions (RFC 8446, 4.2.1).
bool offers_tls13(Bytes extension);

}  // namespace cairn::tls
