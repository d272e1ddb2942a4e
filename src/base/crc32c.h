// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli), the checksum of iSCSI and NVMe/TCP digests and of our own formats.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cairn {

// The CRC32C of `bytes`. To continue over more bytes pass the value returned so far.
uint32_t crc32c(Bytes bytes, uint32_t so_far = 0);

}  // namespace cairn
