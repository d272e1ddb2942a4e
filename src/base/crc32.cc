// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <isa-l/crc.h>

namespace cairn {

uint32_t crc32(Bytes bytes) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace cairn
