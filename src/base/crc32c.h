// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli), the checksum of iSCSI and NVMe/TCP digests and of our own formats.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cairn {

// The CRC32C of `bytes`. To continue over more bytes pass the value returned so far.
uint32_t crc32c(Bytes bytes, uint32_t so_far = 0);

// The same of `from`, which it copies meanwhile: sizes are equal, and they do not overlap. What was
// summed is what was copied, also if somebody changes `from` at the same time.
uint32_t copy_crc32c(MutableBytes to, Bytes from, uint32_t so_far = 0);

}  // namespace cairn
