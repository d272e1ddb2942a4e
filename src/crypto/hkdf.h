// SPDX-License-Identifier: Apache-2.0
// One key out of another, by HKDF as TLS 1.3 uses it.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/bytes.h"
#include "crypto/hash.h"

namespace cairn::crypto {

inline constexpr size_t kHkdfLabelMax = 32;     // without the "tls13 " that TLS puts before it
inline constexpr size_t kHkdfContextMax = 255;  // its length is one byte

// HKDF-Expand-Label(HKDF-Extract(0, key), label, context, L), L being the size of the hash
// (RFC 5869, 2.2; RFC 8446, 7.1). Label and context are within their limits (CHECK).
Digest hkdf_derive(Hash hash, Bytes key, std::string_view label, Bytes context);

}  // namespace cairn::crypto
