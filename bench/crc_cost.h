// SPDX-License-Identifier: Apache-2.0
// What a CRC32C costs by each way that this processor has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/crc32c_paths.h"

namespace cairn::bench {

// Nanoseconds for the sum of `size` bytes in the nearest cache, each from the one before, so that
// no two run at once; the mean of about `bytes` bytes. Copying them too, if told to.
double crc32c_ns(const Crc32cPath& path, size_t size, uint64_t bytes, bool copies);

}  // namespace cairn::bench
