// SPDX-License-Identifier: Apache-2.0
// SHA-2 and HMAC with it.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/bytes.h"
#include "crypto/secret.h"

namespace cairn::crypto {

enum class Hash : uint8_t { kSha256, kSha384, kSha512 };

inline constexpr size_t kDigestMax = 64;
using Digest = SecretBytes<kDigestMax>;

constexpr size_t digest_size(Hash hash) {
  return hash == Hash::kSha256 ? 32 : hash == Hash::kSha384 ? 48 : 64;
}

// The digest of the pieces, one after the other.
Digest digest(Hash hash, std::initializer_list<Bytes> pieces);
// The same with a key of any length (RFC 2104).
Digest hmac(Hash hash, Bytes key, std::initializer_list<Bytes> pieces);

}  // namespace cairn::crypto
