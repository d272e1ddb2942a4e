// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 of 64 bits (Aumasson and Bernstein, 2012): whoever does not know the key cannot
// choose what is hashed so that the results fall together. For tables whose keys others choose.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace cairn {

using SipKey = std::array<uint64_t, 2>;

uint64_t sip_hash(const SipKey& key, Bytes bytes);
// The same of a number's eight bytes, the lowest first.
uint64_t sip_hash(const SipKey& key, uint64_t value);

}  // namespace cairn
