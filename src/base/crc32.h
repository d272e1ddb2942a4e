// SPDX-License-Identifier: Apache-2.0
// CRC-32 (IEEE 802.3), the checksum of Ethernet and gzip, and of NVMe authentication secrets.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace cairn {

// The CRC-32 of less than 1 GiB.
uint32_t crc32(Bytes bytes);

}  // namespace cairn
