// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <isa-l/crc.h>

namespace cairn {

uint32_t crc32c(Bytes bytes, uint32_t so_far) {
  // isa-l counts lengths in int and leaves both inversions to the caller.
  uint32_t state = ~so_far;
  while (!bytes.empty()) {
    const size_t length = bytes.size() < (size_t{1} << 30) ? bytes.size() : size_t{1} << 30;
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(length), state);
    bytes = bytes.subspan(length);
  }
  return ~state;
}

}  // namespace cairn
