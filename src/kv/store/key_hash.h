// SPDX-License-Identifier: Apache-2.0
// Which segment a key is in, and what stands for it there.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/sip_hash.h"

namespace cairn::kv::store {

// Two keys that agree in both are one to the store. They have 64 bits and those of the segment, by
// a secret key: of 100 million keys two agree once in 10^11 stores, and nobody can choose them so.
struct KeyHash {
  uint64_t fingerprint = 0;
  uint32_t segment = 0;
  friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

inline KeyHash hash_of(const SipKey& secret, uint64_t segments, std::string_view key) {
  const SipKey other = {secret[1], ~secret[0]};
  const uint64_t draw = sip_hash(other, as_bytes(key)) >> 32;
  return {.fingerprint = sip_hash(secret, as_bytes(key)),
          .segment = static_cast<uint32_t>(draw * segments >> 32)};
}

}  // namespace cairn::kv::store
