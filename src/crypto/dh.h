// SPDX-License-Identifier: Apache-2.0
// Diffie-Hellman in the finite field groups of RFC 7919.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "crypto/secret.h"

namespace cairn::crypto {

enum class DhGroup : uint8_t { kFfdhe2048, kFfdhe3072, kFfdhe4096, kFfdhe6144, kFfdhe8192 };

inline constexpr size_t kDhMax = 1024;       // bytes of the largest group's prime
inline constexpr size_t kDhSecretSize = 64;  // beyond twice the strength of any of the groups

// Bytes of the prime, and so of each public value and of the shared secret.
size_t dh_size(DhGroup group);

using DhSecret = SecretBytes<kDhSecretSize>;  // a private exponent, uniformly random
using DhValue = SecretBytes<kDhMax>;          // big-endian, as long as the prime

// g ^ secret. `secret` is kDhSecretSize random bytes, used once.
DhValue dh_public(DhGroup group, const DhSecret& secret);
// peer ^ secret. None: `peer` is no public value of the group (RFC 7919, 5.1).
std::optional<DhValue> dh_shared(DhGroup group, const DhSecret& secret, Bytes peer);

}  // namespace cairn::crypto
